"""The store's metadata against the databases themselves.

Every figure is a ratio of one run: copies per second against the rate at which the same
database durably commits the bare rows of a copy (``_bare_commits.py``); a 10,000-segment copy
against the two INSERT … SELECT statements alone; deletes with and without copies; copies of
segments of different sizes. ``python -m bench.store_meta [scale]``.
"""

from __future__ import annotations

import itertools
import os
import statistics
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from sqlalchemy import insert, text
from tests.servers.postgres import running_postgres

from bench._bare_commits import BareCommits
from bench.table import Row, asked_scale, seconds, show
from calque.store.metabase.accounts.create_bucket import CreateBucket, create_bucket
from calque.store.metabase.accounts.nodes import Nodes
from calque.store.metabase.accounts.projects import create_project
from calque.store.metabase.copies.begin_copy import BeginCopy, begin_copy
from calque.store.metabase.copies.finish_copy import FinishCopy, finish_copy
from calque.store.metabase.copies.operations import Operation
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.migrate import migrate
from calque.store.metabase.model.packed_keys import PackedKeys
from calque.store.metabase.model.records import (
    NO_METADATA,
    Encryption,
    ObjectLocation,
    ObjectRecord,
    Position,
    Redundancy,
    SegmentKey,
    SegmentRecord,
    now_us,
)
from calque.store.metabase.model.schema import segments
from calque.store.metabase.objects.begin_object import BeginObject, begin_object
from calque.store.metabase.objects.commit_object import CommitObject, commit_object
from calque.store.metabase.objects.commit_segment import CommitSegment, commit_segment
from calque.store.metabase.objects.delete_object import DeleteObject, delete_object
from calque.store.metabase.objects.list_segments import ListSegments, list_segments

NODE = b"n" * 32
MIB = 1024 * 1024


class Store:
    """A metabase with one project, one bucket and one node."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.database = Database.open(url)
        migrate(self.database)
        self.project = create_project(self.database, os.urandom(4).hex()).project_id
        create_bucket(self.database, CreateBucket(self.project, "bucket"))
        self.nodes = Nodes(self.database)
        self.nodes.register(NODE, "memory:///")
        self.pieces = self.nodes.pack([(0, NODE)])

    def at(self, key: str) -> ObjectLocation:
        return ObjectLocation(self.project, "bucket", key.encode())

    def upload(self, key: str, count: int = 1, size: int = MIB) -> ObjectRecord:
        """An object of ``count`` remote segments; only the first row goes the long way."""
        return self.commit(self.begin(key, count, size))

    def begin(self, key: str, count: int = 1, size: int = MIB) -> ObjectRecord:
        """An upload with all its segments that is not committed yet."""
        location = self.at(key)
        pending = begin_object(self.database, BeginObject(location, Encryption(2, 4096)))
        commit_segment(
            self.database,
            CommitSegment(
                pending.stream_id,
                Position(0, 0),
                os.urandom(12),
                os.urandom(48),
                size + 16,
                size,
                root_piece_id=os.urandom(32),
                redundancy=Redundancy(256, 1, 1, 1, 1),
                alias_pieces=self.pieces,
            ),
        )
        self._insert([(pending.stream_id, number) for number in range(1, count)], size)
        return pending

    def commit(self, pending: ObjectRecord) -> ObjectRecord:
        """Finish an upload."""
        request = CommitObject(pending.location, pending.stream_id)
        return commit_object(self.database, request).object

    def add_segments(self, streams: list[bytes], size: int = MIB) -> None:
        """One segment for each stream, and no object: rows that statistics count."""
        self._insert([(stream, 0) for stream in streams], size)

    def _insert(self, places: list[tuple[bytes, int]], size: int) -> None:
        if not places:
            return
        rows = [
            SegmentRecord(
                stream,
                number,
                now_us(),
                None,
                None,
                os.urandom(32),
                os.urandom(12),
                os.urandom(48),
                size + 16,
                size,
                0,
                None,
                Redundancy(256, 1, 1, 1, 1).encode(),
                None,
                self.pieces,
                0,
            )._asdict()
            for stream, number in places
        ]
        with self.database.engine.begin() as connection:
            connection.execute(insert(segments), rows)

    def copy(self, source: str, target: str) -> ObjectRecord:
        """Begin and Finish, with keys made up."""
        here, there = self.at(source), self.at(target)
        page = begin_copy(self.database, BeginCopy(here, there))
        nonce, key = os.urandom(12), os.urandom(48)
        keys = PackedKeys.of([SegmentKey(each.position, nonce, key) for each in page.keys])
        operation = Operation(os.urandom(16), self.project, now_us() + 3_600_000_000)
        request = FinishCopy(operation, here, page.source.stream_id, there, keys, NO_METADATA)
        return finish_copy(self.database, request).object

    def close(self) -> None:
        self.database.close()


@contextmanager
def stores() -> Iterator[list[Store]]:
    """A store on each database, both with fsync on."""
    with tempfile.TemporaryDirectory() as directory, running_postgres() as server:
        both = [Store(f"sqlite:///{directory}/meta.db"), Store(server.database())]
        try:
            yield both
        finally:
            for store in both:
                store.close()


def in_threads(callers: int, action: Callable[[int], object]) -> float:
    """Seconds until ``callers`` threads have each run ``action``; raises what one raised."""

    def together() -> None:
        with ThreadPoolExecutor(callers) as pool:
            for done in [pool.submit(action, number) for number in range(callers)]:
                done.result()

    return seconds(together)


PER_SOURCE = 90
TURNS = 5
WARM_UP = 30


class SmallCopies:
    """Copies of one-segment objects and their bare rows, by several callers at once."""

    def __init__(self, store: Store, callers: int) -> None:
        self.callers = callers
        self._store = store
        self._tag = os.urandom(3).hex()
        self._numbers = itertools.count()
        model = store.upload(f"{self._tag}-model")
        location = store.at(f"{self._tag}-model")
        segment = list_segments(store.database, ListSegments(location)).segments[0]
        self._bare = [BareCommits(store.url, model, segment) for _ in range(callers)]

    def copies(self, each: int) -> float:
        """Seconds for ``each`` copies by every caller; the sources are there before."""
        turn = f"{self._tag}-{next(self._numbers)}"
        for number in range(self.callers):
            for part in range(-(-each // PER_SOURCE)):
                self._store.upload(f"{turn}-source-{number}-{part}")

        def run(number: int) -> None:
            for count in range(each):
                source = f"{turn}-source-{number}-{count // PER_SOURCE}"
                self._store.copy(source, f"{turn}-copy-{number}-{count}")

        return in_threads(self.callers, run)

    def bare(self, each: int) -> float:
        """Seconds for the rows of as many copies."""
        turn = f"{self._tag}-{next(self._numbers)}"

        def run(number: int) -> None:
            for count in range(each):
                self._bare[number].commit(f"{turn}-bare-{number}-{count}")

        return in_threads(self.callers, run)

    def close(self) -> None:
        for each in self._bare:
            each.close()


def small_copies(store: Store, callers: int, turn_s: float) -> Row:
    """Copies against bare durable commits, in turns of ``turn_s`` seconds or so."""
    work = SmallCopies(store, callers)
    work.copies(WARM_UP)
    each = max(int(WARM_UP * turn_s / work.bare(WARM_UP)), WARM_UP)
    pairs = [(work.copies(each), work.bare(each)) for _ in range(TURNS)]
    work.close()
    ours, peer = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratio = statistics.median(peer / ours for ours, peer in pairs)
    total = callers * each
    return Row(
        f"small copies, {callers} caller(s), {store.database.dialect}",
        f"{total / ours:,.0f}/s",
        f"bare commits {total / peer:,.0f}/s",
        ratio,
        "at least 0.5",
        ratio >= 0.5,
    )


def large_copy(store: Store, count: int) -> Row:
    """A copy with many segments against the two INSERT … SELECT alone."""
    tag = os.urandom(3).hex()
    store.upload(f"{tag}-large", count)
    columns = [column.name for column in segments.columns]
    chosen = ", ".join(
        ":new" if name == "stream_id" else "NULL" if name == "remote_alias_pieces" else name
        for name in columns
    )
    source = begin_copy(
        store.database, BeginCopy(store.at(f"{tag}-large"), store.at("x"), limit=1)
    ).source

    def statements() -> None:
        with store.database.engine.begin() as connection:
            new = {"new": os.urandom(16), "old": source.stream_id}
            connection.execute(
                text(
                    f"INSERT INTO segments ({', '.join(columns)}) "
                    f"SELECT {chosen} FROM segments WHERE stream_id = :old"
                ),
                new,
            )
            connection.execute(
                text(
                    "INSERT INTO segment_copies (stream_id, ancestor_stream_id) "
                    "SELECT :new, stream_id FROM objects WHERE stream_id = :old"
                ),
                new,
            )

    peer, ours = [], []
    for turn in range(3):
        peer.append(seconds(statements))
        ours.append(seconds(lambda turn=turn: store.copy(f"{tag}-large", f"{tag}-{turn}")))  # type: ignore[misc]
    ratio = statistics.median(ours) / statistics.median(peer)
    return Row(
        f"copy of {count:,} segments, {store.database.dialect}",
        f"{statistics.median(ours) * 1000:.0f} ms",
        f"two INSERT … SELECT {statistics.median(peer) * 1000:.0f} ms",
        ratio,
        "under 5",
        ratio < 5,
    )


def sizes_do_not_matter(store: Store, count: int) -> Row:
    """Equal counts of 1 MiB and of 64 MiB segments."""
    tag = os.urandom(3).hex()
    store.upload(f"{tag}-small", count, MIB)
    store.upload(f"{tag}-big", count, 64 * MIB)
    small, big = [], []
    for turn in range(20):
        small.append(seconds(lambda t=turn: store.copy(f"{tag}-small", f"{tag}-s{t}")))  # type: ignore[misc]
        big.append(seconds(lambda t=turn: store.copy(f"{tag}-big", f"{tag}-b{t}")))  # type: ignore[misc]
    return Row(
        f"copy of {count} × 64 MiB, {store.database.dialect}",
        f"{min(big) * 1000:.1f} ms",
        f"as many of 1 MiB {min(small) * 1000:.1f} ms",
        min(big) / min(small),
        "at most 1.2",
        min(big) / min(small) <= 1.2,
    )


def deletes(store: Store, rounds: int) -> Row:
    """Deleting an original with 100 copies against one with none."""
    tag = os.urandom(3).hex()
    alone, family = [], []
    for turn in range(rounds):
        store.upload(f"{tag}-alone-{turn}")
        store.upload(f"{tag}-family-{turn}")
        for number in range(100):
            store.copy(f"{tag}-family-{turn}", f"{tag}-child-{turn}-{number}")
        alone.append(seconds(lambda t=turn: _delete(store, f"{tag}-alone-{t}")))  # type: ignore[misc]
        family.append(seconds(lambda t=turn: _delete(store, f"{tag}-family-{t}")))  # type: ignore[misc]
    # The least of each: a single commit of a busy disk takes anything from one time to ten.
    ours, peer = min(family), min(alone)
    return Row(
        f"delete an original of 100 copies, {store.database.dialect}",
        f"{ours * 1000:.2f} ms",
        f"without copies {peer * 1000:.2f} ms",
        ours / peer,
        "at most 3",
        ours / peer <= 3,
    )


def _delete(store: Store, key: str) -> None:
    delete_object(store.database, DeleteObject(store.at(key)))


def reads_of_an_original(store: Store, reads: int) -> Row:
    """Listing the segments of an original that has 100 copies against one that has none."""
    tag = os.urandom(3).hex()
    store.upload(f"{tag}-alone")
    store.upload(f"{tag}-family")
    for number in range(100):
        store.copy(f"{tag}-family", f"{tag}-child-{number}")

    def read(key: str) -> float:
        request = ListSegments(store.at(key))
        return seconds(lambda: [list_segments(store.database, request) for _ in range(reads)])

    pairs = [(read(f"{tag}-family"), read(f"{tag}-alone")) for _ in range(5)]
    ours, peer = min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)
    return Row(
        f"read an original of 100 copies, {store.database.dialect}",
        f"{ours / reads * 1e6:.0f} µs",
        f"without copies {peer / reads * 1e6:.0f} µs",
        ours / peer,
        "at most 1.2",
        ours / peer <= 1.2,
    )


def many_readers(store: Store, reads: int) -> Row:
    """Lookups a second by 20 threads against 16: more readers must not make each slower."""
    store.upload("readers")
    request = ListSegments(store.at("readers"))

    def read_all(threads: int) -> float:
        def read(_: int) -> None:
            for _turn in range(reads // threads):
                list_segments(store.database, request)

        return (reads // threads * threads) / in_threads(threads, read)

    pairs = [(read_all(20), read_all(16)) for _ in range(TURNS)]
    ours, peer = (statistics.median(side) for side in zip(*pairs, strict=True))
    return Row(
        f"lookups by 20 threads, {store.database.dialect}",
        f"{ours:,.0f}/s",
        f"by 16 threads {peer:,.0f}/s",
        ours / peer,
        "at least 0.9",
        ours / peer >= 0.9,
    )


def run(scale: float = 1.0) -> list[Row]:
    """All measurements; ``scale`` shortens or lengthens the run."""
    rows: list[Row] = []
    with stores() as both:
        for store in both:
            rows.append(small_copies(store, 1, 1.5 * scale))
            rows.append(small_copies(store, 8, 1.5 * scale))
            rows.append(large_copy(store, max(int(10_000 * scale), 1000)))
            rows.append(sizes_do_not_matter(store, max(int(200 * scale), 50)))
            rows.append(deletes(store, max(int(5 * scale), 2)))
            rows.append(reads_of_an_original(store, max(int(200 * scale), 50)))
            if store.database.dialect == "sqlite":  # a server has a bound for its clients
                rows.append(many_readers(store, max(int(20_000 * scale), 400)))
    return rows


def main() -> None:
    """Print the table."""
    show("Store metadata", run(asked_scale()))


if __name__ == "__main__":
    main()
