"""Every operation of the metabase with 100, 1,000 and 10,000 segments, on both databases.

What counts is that the time for a segment stays: ten times the segments take ten times as long,
also with the statistics of a table of many small objects, which make a planner expect few rows.
``python -m bench.store_segments [scale]``.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from sqlalchemy import text

from bench.store_meta import Store, stores
from bench.table import Row, asked_scale, seconds, show
from calque.store.metabase.copies.begin_copy import BeginCopy, begin_copy
from calque.store.metabase.copies.finish_move import FinishMove, finish_move
from calque.store.metabase.copies.operations import Operation
from calque.store.metabase.model.packed_keys import PackedKeys
from calque.store.metabase.model.records import Position, SegmentKey, now_us
from calque.store.metabase.objects.delete_object import DeleteObject, delete_object
from calque.store.metabase.objects.list_segments import ListSegments, list_segments

COUNTS = (100, 1_000, 10_000)
TURNS = 3
BESIDE = 20_000


class Object:
    """An object of ``count`` segments on its way through every operation."""

    def __init__(self, store: Store, count: int) -> None:
        self._store = store
        self._tag = os.urandom(4).hex()
        self._pending = store.begin(self._at("a"), count)

    def steps(self) -> dict[str, Callable[[], object]]:
        """The operations in the order in which they can be done."""
        return {
            "commit": lambda: self._store.commit(self._pending),
            "begin of a copy": lambda: self._page("a", "b"),
            "copy": lambda: self._store.copy(self._at("a"), self._at("b")),
            "move": lambda: self._move("b", "c"),
            "list of segments": lambda: self._list("c"),
            "second copy": lambda: self._store.copy(self._at("c"), self._at("d")),
            "overwrite": lambda: self._store.copy(self._at("c"), self._at("d")),
            "delete with promotion": lambda: self._delete("a"),
            "delete of a copy": lambda: self._delete("d"),
            "delete of the last": lambda: self._delete("c"),
        }

    def _at(self, name: str) -> str:
        return f"{self._tag}-{name}"

    def _page(self, source: str, target: str) -> PackedKeys:
        here, there = (self._store.at(self._at(name)) for name in (source, target))
        page = begin_copy(self._store.database, BeginCopy(here, there))
        return PackedKeys.of([SegmentKey(key.position, b"n" * 12, b"k" * 48) for key in page.keys])

    def _move(self, source: str, target: str) -> None:
        here, there = (self._store.at(self._at(name)) for name in (source, target))
        found = begin_copy(self._store.database, BeginCopy(here, there, limit=1)).source
        operation = Operation(os.urandom(16), self._store.project, now_us() + 3_600_000_000)
        keys = self._page(source, target)
        request = FinishMove(operation, here, found.stream_id, there, keys)
        finish_move(self._store.database, request)

    def _list(self, name: str) -> None:
        cursor, more = None, True
        while more:
            request = ListSegments(self._store.at(self._at(name)), cursor=cursor)
            page = list_segments(self._store.database, request)
            cursor, more = Position.decode(page.segments[-1].position), page.more

    def _delete(self, name: str) -> None:
        delete_object(self._store.database, DeleteObject(self._store.at(self._at(name))))


def measured(store: Store, count: int) -> dict[str, float]:
    """The least time of each operation in a few turns."""
    best: dict[str, float] = {}
    for _ in range(TURNS):
        for name, step in Object(store, count).steps().items():
            best[name] = min(best.get(name, float("inf")), seconds(step))
    return best


def fill(store: Store) -> None:
    """Many small objects beside, and what the planner learns from them."""
    for _ in range(BESIDE // 1000):
        store.add_segments([os.urandom(16) for _ in range(1000)])
    with store.database.engine.begin() as connection:
        connection.execute(text("ANALYZE"))


def rows_of(store: Store, counts: tuple[int, ...] = COUNTS) -> list[Row]:
    """One row for each operation: its times, and how the time for a segment grows."""
    fill(store)
    times = [measured(store, count) for count in counts]
    rows = []
    for name in times[0]:
        taken = [each[name] for each in times]
        ratio = (taken[-1] / counts[-1]) / (taken[-2] / counts[-2])
        rows.append(
            Row(
                f"{name}, {store.database.dialect}",
                " / ".join(f"{each * 1000:.1f}" for each in taken) + " ms",
                " / ".join(f"{count:,}" for count in counts) + " segments",
                ratio,
                "at most 2",
                ratio <= 2,
            )
        )
    return rows


def run(scale: float = 1.0) -> list[Row]:
    """All measurements; ``scale`` shortens the run."""
    counts = tuple(max(int(count * scale), 10) for count in COUNTS)
    with stores() as both:
        return [row for store in both for row in rows_of(store, counts)]


def main() -> None:
    """Print the table."""
    show("Store operations by segments", run(asked_scale()))


if __name__ == "__main__":
    main()
