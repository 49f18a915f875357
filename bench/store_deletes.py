"""Deleting many objects against the bare deletes, and what a second process notices of it.

A bucket and a sweep of 100,000 expired objects; the peer deletes the same rows, and queues the same
pieces, with the database's driver alone, as many in a commit. Both take turns, and medians count.
Meanwhile another process writes to the same metabase: the longest that it waited must not be felt.
``python -m bench.store_deletes [scale]``.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from statistics import median

import psycopg
from sqlalchemy import insert

from bench.store_meta import MIB, Store, stores
from bench.table import Row, asked_scale, seconds, show
from calque.store.metabase.accounts.create_bucket import CreateBucket, create_bucket
from calque.store.metabase.engine.database import Database
from calque.store.metabase.model.records import Encryption, ObjectRecord, new_stream_id, now_us
from calque.store.metabase.model.schema import COMMITTED, objects
from calque.store.metabase.objects.delete_batch import (
    BATCH,
    DeleteBucket,
    delete_bucket,
    delete_expired,
)

FELT_MS = 1000
TURNS = 3


def fill(store: Store, bucket: str, count: int, *, expired: bool) -> None:
    """A bucket with ``count`` committed objects of one remote segment."""
    create_bucket(store.database, CreateBucket(store.project, bucket))
    now = now_us()
    records = [
        ObjectRecord(
            store.project, bucket, f"key {number:08}".encode(), 1, new_stream_id(now), now,
            now - 1 if expired else None, COMMITTED, 1, None, None, None, MIB, MIB + 16, MIB,
            Encryption(2, 4096).encode(), None,
        )
        for number in range(count)
    ]  # fmt: skip
    with store.database.engine.begin() as connection:
        connection.execute(insert(objects), [record._asdict() for record in records])
    store.add_segments([record.stream_id for record in records])


FREE = (
    "INSERT INTO freed_segments (root_piece_id, alias_pieces, freed_at)"
    " SELECT root_piece_id, remote_alias_pieces, 1 FROM segments WHERE stream_id = {}"
)
DROP_SEGMENTS = "DELETE FROM segments WHERE stream_id = {}"
DROP_OBJECT = "DELETE FROM objects WHERE stream_id = {}"


def delete_bare(store: Store, bucket: str) -> float:
    """Seconds for the same rows with the driver alone, in batches as large."""
    run, mark, begin = _driver(store)
    find = f"SELECT stream_id FROM objects WHERE bucket_name = '{bucket}'"
    streams = [row[0] for row in run(find, ())]

    def work() -> None:
        for start in range(0, len(streams), BATCH):
            run(begin, ())
            for stream in streams[start : start + BATCH]:
                for statement in (FREE, DROP_SEGMENTS, DROP_OBJECT):
                    run(statement.format(mark), (stream,))
            run("COMMIT", ())

    return seconds(work)


def _driver(store: Store) -> tuple[Callable[..., Iterable[tuple[bytes]]], str, str]:
    if store.url.startswith("sqlite:///"):
        file = sqlite3.connect(store.url.removeprefix("sqlite:///"), isolation_level=None)
        file.execute("PRAGMA synchronous=FULL")
        return file.execute, "?", "BEGIN IMMEDIATE"
    server = psycopg.connect(store.url.replace("+psycopg", ""), autocommit=True)
    return server.execute, "%s", "BEGIN"


def write_until_told(url: str) -> None:
    """The second process: small writes one after the other; prints the longest wait."""
    database = Database.open(url)
    longest = 0.0
    os.set_blocking(sys.stdin.fileno(), False)
    print("ready", flush=True)
    number = 0
    while sys.stdin.buffer.read() is None:
        name = f"second-{os.getpid()}-{number}"
        started = time.perf_counter()
        create_bucket(database, CreateBucket(b"second process..", name))
        longest = max(longest, time.perf_counter() - started)
        number += 1
        time.sleep(0.02)
    print(longest, number)


def beside_another(store: Store, work: Callable[[], object]) -> tuple[float, float]:
    """Seconds for ``work``, and the longest wait of a second process that writes meanwhile."""
    code = f"from bench.store_deletes import write_until_told; write_until_told({store.url!r})"
    with subprocess.Popen(
        [sys.executable, "-c", code], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as second:
        assert second.stdout is not None
        second.stdout.readline()
        taken = seconds(work)
        out, _ = second.communicate("stop")
    return taken, float(out.split()[0])


def measure(store: Store, what: str, count: int, *, expired: bool) -> list[Row]:
    """One kind of mass delete: its rate, and what another process waits."""

    def ours(bucket: str) -> Callable[[], object]:
        if expired:
            return lambda: list(delete_expired(store.database))
        request = DeleteBucket(store.project, bucket, everything=True)
        return lambda: list(delete_bucket(store.database, request))

    tag = os.urandom(3).hex()
    bare, own = [], []
    for turn in range(TURNS):
        fill(store, f"{tag}-bare-{turn}", count, expired=expired)  # the same rows
        bare.append(delete_bare(store, f"{tag}-bare-{turn}"))
        fill(store, f"{tag}-ours-{turn}", count, expired=expired)
        own.append(seconds(ours(f"{tag}-ours-{turn}")))
    peer, alone = median(bare), median(own)
    fill(store, f"{tag}-beside", count, expired=expired)
    _, waited = beside_another(store, ours(f"{tag}-beside"))
    name = f"{what} of {count:,} objects, {store.database.dialect}"
    return [
        Row(
            name,
            f"{alone:.1f} s",
            f"bare deletes {peer:.1f} s",
            alone / peer,
            "at most 2",
            alone / peer <= 2,
        ),
        Row(
            f"a write of a second process during the {what} of {count:,}, {store.database.dialect}",
            f"{waited * 1000:.0f} ms at most",
            f"felt {FELT_MS} ms",
            waited * 1000 / FELT_MS,
            "under 1",
            waited * 1000 < FELT_MS,
        ),
    ]


def run(scale: float = 1.0) -> list[Row]:
    """All measurements; ``scale`` shortens the run."""
    count = max(int(100_000 * scale), 1000)
    rows: list[Row] = []
    with stores() as both:
        for store in both:
            rows += measure(store, "bucket delete", count, expired=False)
            rows += measure(store, "sweep", count, expired=True)
    return rows


if __name__ == "__main__":
    show("Mass deletes", run(asked_scale()))
