"""When a written file has its name, and when its bytes are durable."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from calque.errors import CalqueError
from calque.operator import Operator

BYTES_FIRST = ["fsync", "rename", "fsync"]
NAME_FIRST = ["rename", "fsync", "fsync"]


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the system is asked to make durable or to rename, in its order."""
    asked: list[str] = []

    def note(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*args: Any, **options: Any) -> Any:
            asked.append(name)
            return call(*args, **options)

        return noted

    for name in ("fsync", "rename"):
        monkeypatch.setattr(os, name, note(name, getattr(os, name)))
    return asked


def test_bytes_are_durable_before_their_name(tmp_path: Path, steps: list[str]) -> None:
    """A power failure leaves the old file or the new one, also where there was none."""
    op = Operator.from_uri(tmp_path)
    for _ in range(2):
        op.write("a", b"x")
        assert steps == BYTES_FIRST
        steps.clear()


def test_what_nobody_looks_for_has_its_name_first(tmp_path: Path, steps: list[str]) -> None:
    """Both are durable when it returns; what was there before is never risked."""
    op = Operator.from_uri(tmp_path)
    op.write("a", b"x", unseen=True)
    assert (steps, op.read("a")) == (NAME_FIRST, b"x")
    steps.clear()
    op.write("a", b"y", unseen=True)
    assert (steps, op.read("a")) == (BYTES_FIRST, b"y")


def test_a_disk_that_fails_behind_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever wrote is told, and a second try replaces what may be half of the first."""
    op = Operator.from_uri(tmp_path)
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", _fail)
        with pytest.raises(CalqueError):
            op.write("a", b"x", unseen=True)
    op.write("a", b"y", unseen=True)
    assert (op.read("a"), os.listdir(tmp_path)) == (b"y", ["a"])


def _fail(_descriptor: int) -> None:
    raise OSError(5, "Input/output error")
