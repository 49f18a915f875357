"""Stores by their names in calque.toml."""

from pathlib import Path

import pytest

import calque
from calque.errors import NotFound


def test_a_store_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``@archive`` is the store that the file calls archive, for Python and for calque://."""
    monkeypatch.chdir(tmp_path)
    Path("calque.toml").write_text('[stores.archive]\nlocation = "./deep/archive"\n')
    with calque.open_project("@archive") as project:
        project.create_bucket("films")
        project.upload("films", "a", b"frames")
    assert (tmp_path / "deep" / "archive" / "meta.db").exists()
    monkeypatch.setenv("CALQUE_PROJECT", "@archive")
    assert calque.Operator.from_uri("calque://films").read("a") == b"frames"


def test_a_name_that_is_not_there_lists_those_that_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A typo never makes a new store."""
    monkeypatch.chdir(tmp_path)
    Path("calque.toml").write_text('[stores.archive]\nlocation = "./archive"\n')
    with pytest.raises(NotFound, match="@archive"):
        calque.open_project("@archiv")
    assert list(tmp_path.iterdir()) == [tmp_path / "calque.toml"]
