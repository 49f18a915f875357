"""What is a place of a store, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from calque.errors import InvalidInput
from calque.store.open_project import open_project


def test_a_grant_is_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A grant given as the place is refused unrepeated: no folder is named by a secret."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput) as caught:
        open_project("calque1-c2VjcmV0")
    assert "c2VjcmV0" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
