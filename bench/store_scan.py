"""The scan of a store: segments into filters for a CPU second, memory, what it costs a live store.

Six pieces a segment on twelve nodes, PostgreSQL, in this process. ``python -m bench.store_scan
[scale]``: 1 means a million segments, and ten million for the second size.
"""

from __future__ import annotations

import itertools
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from typing import TypeVar

import psutil
from sqlalchemy import text
from tests.servers.postgres import running_postgres

from bench._commands import peak_memory
from bench.store_meta import Store
from bench.table import Row, asked_scale, seconds, show
from calque.store.embedded import EmbeddedStore, StoreOptions
from calque.store.metabase.accounts.nodes import Nodes
from calque.store.metabase.engine.database import Database
from calque.store.metabase.scan import Range, Snapshot, open_snapshot
from calque.store.nodes.bloom import BloomShape
from calque.store.nodes.erasure import Redundancy
from calque.store.open_project import open_project
from calque.store.upkeep.piece_filters import PieceFilters
from calque.store.upkeep.process_runner import ProcessRunner
from calque.store.upkeep.repair import RepairOptions, repair_store
from calque.store.upkeep.scan import RangeResult, Runner, ScanJob, run_scan
from calque.values import GIB, MIB

T = TypeVar("T")

NODES = 12
ROUNDS = 3
FILL = """
INSERT INTO segments SELECT decode(md5('s' || n), 'hex'), 0, 1, NULL, NULL,
    decode(md5(n::text) || md5('r' || n), 'hex'), ''::bytea, ''::bytea, 1000000, 999000, 0, NULL,
    {redundancy}, NULL, decode('01' || (SELECT string_agg('00' || lpad(to_hex((n + i) % 12 + 1), 2,
    '0'), '' ORDER BY i) FROM generate_series(0, 5) AS i), 'hex'), 0
    FROM generate_series({first}, {last}) AS n
"""
SCHEME = 256 << 32 | 4 << 24 | 5 << 16 | 5 << 8 | 6


def run(scale: float) -> list[Row]:
    """All rows; ``scale`` 1 is a million segments and ten million."""
    count = max(int(1_000_000 * scale), 100)
    with running_postgres() as server:
        store = Store(server.database())
        rows = [*_speeds(store.database, count), _beside_copies(store, count, scale)]
        store.database.close()
    return [*rows, _repairs(max(int(64 * scale), 4))]


def _speeds(database: Database, count: int) -> list[Row]:
    for number in range(NODES):
        Nodes(database).register(bytes([number + 1]) * 32, f"memory:///{number}")
    small, large = (_scan(database, first, last) for first, last in
                    ((0, count), (count, 10 * count)))  # fmt: skip
    rows = [
        Row(
            f"{count:,} segments into filters", f"{small:,.0f} a CPU second", "90,000",
            small / 90_000, "at least 1", small >= 90_000,
        ),
        Row(
            f"{10 * count:,} segments against {count:,}", f"{large:,.0f} a CPU second",
            f"{small:,.0f}", large / small, "at least 0.9", large >= 0.9 * small,
        ),
    ]  # fmt: skip
    held = {"this process": peak_memory(os.getpid()), "a worker": _memory_of_worker(database)}
    for whose, most in held.items():
        ratio = most / MIB / 200
        told = f"memory of {whose}, {10 * count:,} segments"
        rows.append(Row(told, f"{most / MIB:.0f} MiB", "200 MiB", ratio, "at most 1", ratio <= 1))
    return rows


def _scan(database: Database, first: int, last: int) -> float:
    """Fill the table up to ``last``; segments of a whole scan for each CPU second."""
    with database.engine.begin() as session:
        session.execute(text(FILL.format(redundancy=SCHEME, first=first, last=last - 1)))
    taken = []
    for _ in range(ROUNDS):
        started = time.process_time()
        filter_segments(database)
        taken.append(time.process_time() - started)
    return last / statistics.median(taken)


def _memory_of_worker(database: Database) -> int:
    """What the process that a server starts for a scan holds at most."""
    scanning = threading.Thread(target=lambda: filter_segments(database, ProcessRunner()))
    scanning.start()
    peak = 0
    while scanning.is_alive():
        children = psutil.Process().children()
        peak = max([peak, *(peak_memory(each.pid) for each in children if _is_worker(each))])
        scanning.join(0.01)
    return peak


def _is_worker(process: psutil.Process) -> bool:
    try:
        return any("range_worker" in word for word in process.cmdline())
    except psutil.Error:
        return False


def filter_segments(database: Database, runner: Runner | None = None) -> None:
    """What a garbage collection computes, without sending it."""
    nodes = {each.alias: each.node_id for each in Nodes(database).all()}
    with open_snapshot(database) as snapshot:
        shapes = {alias: BloomShape.of(snapshot.rows // 2, 7) for alias in nodes}
        run_scan(snapshot, [PieceFilters(nodes, shapes)], runner=runner, ranges=snapshot.cut())


def _beside_copies(store: Store, count: int, scale: float) -> Row:
    """Copies of an object while the store is scanned, and while it is not."""
    store.upload("original")
    each = max(int(2000 * scale), 100)
    numbers = itertools.count()

    def copy_some() -> None:
        for _ in range(each):
            store.copy("original", f"copy{next(numbers) % 90}")

    quiet: list[float] = []
    busy: list[float] = []
    for turn in range(ROUNDS + 1):
        for taken in (quiet, busy)[:: 1 if turn % 2 else -1]:
            with _scanning(store.url) if taken is busy else nullcontext():
                taken.append(seconds(copy_some))
    # the first round is for caches and statistics
    alone, beside = statistics.median(quiet[1:]), statistics.median(busy[1:])
    return Row(
        f"copies while {10 * count:,} segments are scanned", f"{each / beside:.0f}/s",
        f"{each / alone:.0f}/s without", alone / beside, "at least 0.9", alone / beside >= 0.9,
    )  # fmt: skip


class _Stopped(Exception):
    """The scan is no longer wanted."""


class _Watched:
    """The engine of a server, which says when rows are being read and can be stopped midway."""

    name = ProcessRunner.name

    def __init__(self) -> None:
        self.begun, self.over = threading.Event(), threading.Event()

    def run(
        self, snapshot: Snapshot, job: ScanJob, ranges: Sequence[Range]
    ) -> Iterator[RangeResult]:
        for result in ProcessRunner().run(snapshot, job, ranges):
            self.begun.set()
            if self.over.is_set():
                raise _Stopped
            yield result


@contextmanager
def _scanning(url: str) -> Iterator[None]:
    """Scan after scan for the length of a ``with`` block; its start is over when it begins."""
    engine = _Watched()

    def scan() -> None:
        database = Database.open(url)
        try:
            with suppress(_Stopped):
                while not engine.over.is_set():
                    filter_segments(database, engine)
        finally:
            engine.begun.set()
            database.close()

    with ThreadPoolExecutor(1) as pool:
        scans = pool.submit(scan)
        engine.begun.wait()
        try:
            yield
        finally:
            engine.over.set()
            scans.result()  # a scan that failed was none


def _repairs(objects: int) -> Row:
    """Two of eight nodes lost: repair against reading four pieces a segment, writing what is lost.

    Both read the same pieces and write as many, so the start of a repair and its checks count.
    """
    taken = [_repair(objects) for _ in range(ROUNDS)]
    took, bare = (statistics.median(side) for side in zip(*taken, strict=True))
    ratio = bare / took
    return Row(
        f"repair of {objects} segments of 16 MiB", f"{took * 1000:.0f} ms a GiB of objects",
        f"read and written alone {bare * 1000:.0f} ms", ratio, "at least 0.6", ratio >= 0.6,
    )  # fmt: skip


def _repair(objects: int) -> tuple[float, float]:
    """Seconds for each GiB of objects: of a repair, and of the bare bytes."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as place:
        roots = [f"{place}/disk{number}" for number in range(8)]
        options = StoreOptions(redundancy=Redundancy.of(4, 6), nodes=roots)
        EmbeddedStore.create(f"{place}/store", options).close()
        with open_project(f"{place}/store") as project:
            project.create_bucket("bucket")
            for number in range(objects):
                project.upload("bucket", f"k{number}", bytes(16 * MIB))
        store = EmbeddedStore.open(f"{place}/store")
        os.sync()  # neither waits for what the uploads left to write
        took, report = _timed(lambda: repair_store(store, RepairOptions(gone=tuple(roots[:2]))))
        os.sync()
        bare, _ = _timed(lambda: _bare(store, report.repaired, report.pieces))
        store.close()
    if not report.pieces:
        raise SystemExit("the repair found nothing to do")
    share = objects * 16 * MIB / GIB
    return took / share, bare / share


def _bare(store: EmbeddedStore, segments: int, lost: int) -> None:
    """Read four pieces for each of ``segments``, and write ``lost`` in all, durably."""
    nodes = store.nodes.direct()[2:]
    pieces = {node: [each.piece for each in node.pieces()] for node in nodes}
    left = lost
    for number in range(segments):
        chosen = [node for node in nodes if len(pieces[node]) > number][:4]
        whole = [b"".join(node.read(pieces[node][number], 0, 1 << 40)) for node in chosen]
        many = -(-left // (segments - number))  # as evenly as they were lost
        for node, piece in zip(chosen[:many], whole, strict=False):
            node.root.write(f"bench/{number}", piece)
        left -= many
    if left:
        raise SystemExit("the peer wrote fewer pieces than the repair")


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    started = time.perf_counter()
    done = work()
    return time.perf_counter() - started, done


def main() -> None:
    show("The scan of a store", run(asked_scale()))


if __name__ == "__main__":
    main()
