"""Servers that do not begin where they are told: listed one after the other, and right."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import calque
from calque.operator import Operator
from calque.operator.services.memory.service import MemoryService
from calque.transfer.model import KeyRange
from calque.transfer.plan.side import Side
from calque.transfer.run import lister
from calque.values import Metadata
from tests.transfer.conftest import objects_of


def test_start_after_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that ignores start-after is found by the border check, and each object is copied
    once; a range that is resumed there leaves out what lies before it."""
    source, target = Operator.from_uri("memory://deaf"), Operator.from_uri("memory://deaf-copy")
    wanted = {f"{number:04d}": b"x" for number in range(300)}
    for path, content in wanted.items():
        source.write(path, content)
    listed = MemoryService.list
    calls: list[str] = []

    def deaf(
        self: MemoryService, prefix: str, *, start_after: str = "", recursive: bool = True
    ) -> Iterator[Metadata]:
        calls.append(start_after)
        return listed(self, prefix, recursive=recursive)

    monkeypatch.setattr(MemoryService, "list", deaf)
    monkeypatch.setattr(lister, "_PAGE", 10)
    monkeypatch.setattr(lister, "_PAGES_ALONE", 3)
    report = calque.copy_tree(source, target)
    assert report.ok, report.problems
    assert report.totals.of("copied").objects == len(wanted)
    assert objects_of(target) == wanted
    assert len([each for each in calls if each]) == 1, "one look, and no range begun in the middle"
    left = Side(source.service).entries(span=KeyRange("0290", "0295"))
    assert [path for path, _ in left] == [f"{number:04d}" for number in range(291, 296)]


def test_borders_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they are kept several list at once, and each object is still copied once."""
    source, target = Operator.from_uri("memory://keen"), Operator.from_uri("memory://keen-copy")
    wanted = {f"{number:04d}": b"x" for number in range(600)}
    for path, content in wanted.items():
        source.write(path, content)
    monkeypatch.setattr(lister, "_PAGE", 10)
    monkeypatch.setattr(lister, "_PAGES_ALONE", 3)
    report = calque.copy_tree(source, target)
    assert report.totals.of("copied").objects == len(wanted)
    assert objects_of(target) == wanted
