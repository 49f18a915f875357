"""Flags that pass without Typer's checks mean what they mean with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Calque


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("cp", "a", "b", "--concurrent", "many"), "--concurrent"),
        (("sync", "a/", "b/", "--compare", "taste"), "--compare"),
        (("load", "a", "--into", "t", "--max-files", "1.5"), "--max-files"),
        (("serve", "x", "--port", "70000"), "--port"),
        (("console", "--port", "-1"), "--port"),
        (("--log", "yaml", "ls"), "--log"),
        (("cp",), "SRC... DST"),
        (("preview", "a", "--rows", "x"), "--rows"),
    ],
)
def test_wrong_values_are_refused(
    calque_here: Calque, folder: Path, words: tuple[str, ...], said: str
) -> None:
    """By their names, as wrong usage, before anything is done."""
    done = calque_here(*words)
    assert done.returncode == 2
    assert said in done.stderr


def test_right_values_are_taken(calque_here: Calque, folder: Path) -> None:
    """Numbers, choices and lists, in words or as defaults; a flag twice is a list of two."""
    (folder / "a").mkdir()
    for name in ("x.txt", "y.tmp", "z.bak"):
        (folder / "a" / name).write_text("1")
    flags = ("--exclude", "*.tmp", "--exclude=*.bak", "--compare", "size", "-c", "3")
    done = calque_here("sync", "a/", "b/", *flags)
    assert done.returncode == 0, done.stderr
    assert [each.name for each in (folder / "b").iterdir()] == ["x.txt"]


def test_no_word_at_all_is_the_help(calque_here: Calque) -> None:
    """With the code of wrong usage; asked for, it is no error."""
    nothing, asked = calque_here(), calque_here("--help")
    assert (nothing.returncode, asked.returncode) == (2, 0)
    assert nothing.stdout == asked.stdout
    assert "calque demo" in asked.stdout
    assert "  cp  " in asked.stdout
    assert "\x1b" not in asked.stdout
