"""The store's operations when it is full: the same calls with a thousand objects and with millions.

Copy, move, delete and a page of a listing, at random keys, p50 and p99, on both databases. Every
object has one remote segment. ``python -m bench.store_scale [scale]``: 1 means a thousand objects
against a million, 10 against ten million.
"""

from __future__ import annotations

import os
import random
import sqlite3
import statistics
from collections.abc import Callable, Iterator

import psycopg
from sqlalchemy import text

from bench.store_meta import MIB, Store, stores
from bench.table import Row, asked_scale, seconds, show
from calque.store.metabase.copies.begin_copy import BeginCopy, begin_copy
from calque.store.metabase.copies.finish_move import FinishMove, finish_move
from calque.store.metabase.copies.operations import Operation
from calque.store.metabase.model.packed_keys import PackedKeys
from calque.store.metabase.model.records import (
    Encryption,
    Redundancy,
    SegmentKey,
    new_stream_id,
    now_us,
)
from calque.store.metabase.model.schema import COMMITTED, objects, segments
from calque.store.metabase.objects.delete_object import DeleteObject, delete_object
from calque.store.metabase.objects.list_objects import ListObjects, list_objects

FEW = 1000
CALLS = 200
WARM_UP = 50
PAGE = 500
WANTED = 1.5
_AT_ONCE = 200_000

Times = dict[str, list[float]]


def key_of(number: int) -> str:
    """Keys in no order, as encrypted ones are, but known by their number."""
    return f"{number * 0x9E3779B97F4A7C15 % 2**64:016x}"


def fill(store: Store, first: int, last: int) -> None:
    """Committed objects ``first`` to ``last`` with a segment each, straight into the tables."""
    for start in range(first, last, _AT_ONCE):
        # Sorted, as a tree takes them best; every batch lies all over the bucket.
        numbers = sorted(range(start, min(start + _AT_ONCE, last)), key=key_of)
        streams = [new_stream_id(now_us()) for _ in numbers]
        _insert(store, objects.name, _objects(store, numbers, streams))
        _insert(store, segments.name, _segments(store, streams))


def _objects(
    store: Store, numbers: list[int], streams: list[bytes]
) -> Iterator[tuple[object, ...]]:
    now, encryption = now_us(), Encryption(2, 4096).encode()
    for number, stream in zip(numbers, streams, strict=True):
        yield (
            store.project, "bucket", key_of(number).encode(), 1, stream, now, None, COMMITTED, 1,
            None, None, None, MIB, MIB + 16, MIB, encryption, None,
        )  # fmt: skip


def _segments(store: Store, streams: list[bytes]) -> Iterator[tuple[object, ...]]:
    now, redundancy = now_us(), Redundancy(256, 1, 1, 1, 1).encode()
    for stream in streams:
        yield (
            stream, 0, now, None, None, os.urandom(32), bytes(12), bytes(48), MIB + 16, MIB, 0,
            None, redundancy, None, store.pieces, 0,
        )  # fmt: skip


def _insert(store: Store, table: str, rows: Iterator[tuple[object, ...]]) -> None:
    if store.url.startswith("sqlite:///"):
        with sqlite3.connect(store.url.removeprefix("sqlite:///")) as file:
            # Only the filling is in a hurry: what is measured opens the file in its own way.
            file.execute("PRAGMA cache_size=-524288")
            file.execute("PRAGMA synchronous=OFF")
            wide = objects if table == objects.name else segments
            marks = ", ".join("?" * len(wide.columns))
            file.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
        file.close()
        return
    with (
        psycopg.connect(store.url.replace("+psycopg", "")) as server,
        server.cursor().copy(f"COPY {table} FROM STDIN") as copy,
    ):
        for row in rows:
            copy.write_row(row)


def settle(store: Store) -> None:
    """What a database does by itself after a while: statistics, and its log written back."""
    steps = ["VACUUM (ANALYZE) objects", "VACUUM (ANALYZE) segments", "CHECKPOINT"]
    if store.url.startswith("sqlite:///"):
        steps = ["PRAGMA wal_checkpoint(TRUNCATE)"]
    with store.database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as session:
        for step in steps:
            session.execute(text(step))


def time_calls(store: Store, first: int, count: int, calls: int) -> Times:
    """Seconds of each call, at random ones of the objects ``first`` and the ``count`` after it."""
    tag = os.urandom(3).hex()
    # Those of the first round are gone, or under another key.
    draw = random.Random(7)
    numbers = draw.sample(range(first, first + count), 2 * calls)
    taken: Times = {"list page": [], "copy": [], "move": [], "delete": []}
    for turn, (kept, going) in enumerate(zip(numbers[::2], numbers[1::2], strict=True)):
        # From the first quarter, so that few objects give a full page too.
        cursor = f"{draw.randrange(2**62):016x}".encode()
        page = ListObjects(store.project, "bucket", cursor=cursor, limit=PAGE)
        works: dict[str, Callable[[], object]] = {
            "list page": lambda page=page: list_objects(store.database, page),  # type: ignore[misc]
            "copy": lambda k=kept, t=turn: store.copy(key_of(k), f"{tag}{t}"),  # type: ignore[misc]
            "move": lambda k=kept, t=turn: _move(store, key_of(k), f"{tag}m{t}"),  # type: ignore[misc]
            "delete": lambda k=going: _delete(store, key_of(k)),  # type: ignore[misc]
        }
        for name, work in works.items():
            taken[name].append(seconds(work))
    return taken


def _move(store: Store, source: str, target: str) -> None:
    here, there = store.at(source), store.at(target)
    page = begin_copy(store.database, BeginCopy(here, there))
    keys = PackedKeys.of([SegmentKey(each.position, bytes(12), bytes(48)) for each in page.keys])
    operation = Operation(os.urandom(16), store.project, now_us() + 3_600_000_000)
    stream = page.source.stream_id
    finish_move(store.database, FinishMove(operation, here, stream, there, keys))


def _delete(store: Store, key: str) -> None:
    delete_object(store.database, DeleteObject(store.at(key)))


def compare(store: Store, many: int, calls: int) -> list[Row]:
    """The same calls with few objects and with many; the first of each are for the caches."""
    found: list[Times] = []
    there = 0
    for count in (FEW, many):
        fill(store, there, count)
        settle(store)
        taken = time_calls(store, there, count - there, calls + WARM_UP)
        found.append({name: each[WARM_UP:] for name, each in taken.items()})
        there = count
    few, full = found
    return [_row(store, name, many, few[name], full[name]) for name in few]


def _row(store: Store, name: str, many: int, few: list[float], full: list[float]) -> Row:
    half, most = (_percentiles(side) for side in (few, full))
    ratio = most[0] / half[0]
    return Row(
        f"{name} among {many:,} objects, {store.database.dialect}",
        f"p50 {most[0] * 1000:.2f} ms, p99 {most[1] * 1000:.2f} ms",
        f"among {FEW:,} p50 {half[0] * 1000:.2f} ms, p99 {half[1] * 1000:.2f} ms",
        ratio,
        f"at most {WANTED:g}",
        ratio <= WANTED,
    )


def _percentiles(taken: list[float]) -> tuple[float, float]:
    cuts = statistics.quantiles(taken, n=100, method="inclusive")
    return cuts[49], cuts[98]


def run(scale: float = 1.0) -> list[Row]:
    """All measurements; ``scale`` 1 is a million objects."""
    many = max(int(1_000_000 * scale), 2 * FEW)
    with stores() as both:
        return [row for store in both for row in compare(store, many, CALLS)]


if __name__ == "__main__":
    show("A full store", run(asked_scale()))
