"""When a written file has its name, and when its bytes are durable."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from calque.operator import Operator


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
        assert steps == ["fsync", "rename", "fsync"]
        steps.clear()
