"""Listings sorted on disk: the right order, nothing lost, memory that does not grow."""

from __future__ import annotations

import tracemalloc
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from random import Random

import pytest

from calque.errors import ResourceExhausted
from calque.transfer.model import sort_key
from calque.transfer.plan.sort_on_disk import sort_on_disk
from calque.values import Checksum, Metadata


def _entries(count: int) -> Iterator[tuple[str, Metadata]]:
    chance = Random(3)
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    for number in range(count):
        path = f"{chance.getrandbits(40):x}/dir-{number % 7}/{number}"
        yield path, Metadata.from_listing(f"root/{path}", number, moment, etag=f"e{number}")


@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 7_000])
def test_sorted(count: int) -> None:
    """Runs on disk, merged in levels, come out in the order of keys with all their fields."""
    found = list(sort_on_disk(_entries(count), run=100))
    assert found == sorted(_entries(count), key=lambda each: sort_key(each[0]))


def test_entries_with_more_than_a_listing_tells() -> None:
    """Whatever an entry says survives."""
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    entries = [
        ("b\udcff", Metadata("b\udcff", 1, token="t")),
        ("b\U0010ffff", Metadata("b\U0010ffff", 1, checksum=Checksum("md5", "x"))),
        ("a/", Metadata("a/", is_dir=True)),
        ("c", Metadata("c", 3, user={"k": "v"}, tags={"t": "u"}, last_modified=moment)),
        ("d", Metadata("d", 3, storage_class="GLACIER", version="1", content_type="text/plain")),
    ]
    assert list(sort_on_disk(reversed(entries), run=2)) == [
        entries[2],
        entries[1],
        entries[0],
        *entries[3:],
    ]


def _peak(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_hold_the_listing() -> None:
    """Runs, and a batch of each while they are merged, are all that is in memory."""
    held = _peak(lambda: sorted(_entries(8_000), key=lambda each: each[0]))
    assert _peak(lambda: deque(sort_on_disk(_entries(8_000), run=800), maxlen=0)) < held / 2


def test_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that cannot be used is told in our words."""
    monkeypatch.setattr("tempfile.tempdir", "/dev/null/nowhere")
    with pytest.raises(ResourceExhausted, match="sorted on disk"):
        list(sort_on_disk(_entries(10), run=5))
