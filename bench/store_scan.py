"""The scan of a store: segments into filters for a CPU second, memory, what it costs a live store.

Six pieces a segment on twelve nodes, PostgreSQL, in this process. ``python -m bench.store_scan
[scale]``: 1 means a million segments, and ten million for the second size.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import threading
import time

from sqlalchemy import text
from tests.servers.postgres import running_postgres

from bench.store_meta import Store
from bench.table import Row, alternate, show
from calque.store.embedded import EmbeddedStore, StoreOptions
from calque.store.metabase.accounts.nodes import Nodes
from calque.store.metabase.engine.database import Database
from calque.store.metabase.scan import open_snapshot
from calque.store.nodes.bloom import BloomShape
from calque.store.nodes.erasure import Redundancy
from calque.store.open_project import open_project
from calque.store.upkeep.piece_filters import PieceFilters
from calque.store.upkeep.process_runner import ProcessRunner
from calque.store.upkeep.repair import RepairOptions, repair_store
from calque.store.upkeep.scan import Runner, run_scan
from calque.values import MIB

NODES = 12
FILL = """
INSERT INTO segments SELECT decode(md5('s' || n), 'hex'), 0, 1, NULL, NULL,
    decode(md5(n::text) || md5('r' || n), 'hex'), ''::bytea, ''::bytea, 1000000, 999000, 0, NULL,
    {redundancy}, NULL, decode('01' || (SELECT string_agg('00' || lpad(to_hex((n + i) % 12 + 1), 2,
    '0'), '' ORDER BY i) FROM generate_series(0, 5) AS i), 'hex'), 0
    FROM generate_series({first}, {last}) AS n
"""
SCHEME = 256 << 32 | 4 << 24 | 5 << 16 | 5 << 8 | 6


def main(scale: float) -> None:
    count = int(1_000_000 * scale)
    with running_postgres() as server:
        store = Store(server.database())
        rows = [*_speeds(store.database, count), _beside_copies(store, count)]
        store.database.close()
    show("The scan of a store", [*rows, _repairs(max(int(16 * scale), 2))])


def _speeds(database: Database, count: int) -> list[Row]:
    for number in range(NODES):
        Nodes(database).register(bytes([number + 1]) * 32, f"memory:///{number}")
    small, large = (_scan(database, first, last) for first, last in
                    ((0, count), (count, 10 * count)))  # fmt: skip
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [
        Row(
            f"{count:,} segments into filters", f"{small:,.0f} a CPU second", "90,000",
            small / 90_000, "at least 1", small >= 90_000,
        ),
        Row(
            f"{10 * count:,} segments against {count:,}", f"{large:,.0f} a CPU second",
            f"{small:,.0f}", large / small, "at least 0.9", large >= 0.9 * small,
        ),
        Row(
            "memory of the process", f"{memory:.0f} MiB", "200 MiB", memory / 200, "at most 1",
            memory <= 200,
        ),
    ]  # fmt: skip


def _scan(database: Database, first: int, last: int) -> float:
    """Fill the table up to ``last``; segments of a whole scan for each CPU second."""
    with database.engine.begin() as session:
        session.execute(text(FILL.format(redundancy=SCHEME, first=first, last=last - 1)))
    started = time.process_time()
    filter_segments(database)
    return last / (time.process_time() - started)


def filter_segments(database: Database, runner: Runner | None = None) -> None:
    """What a garbage collection computes, without sending it."""
    nodes = {each.alias: each.node_id for each in Nodes(database).all()}
    with open_snapshot(database) as snapshot:
        shapes = {alias: BloomShape.of(snapshot.rows // 2, 7) for alias in nodes}
        ranges = snapshot.cut(ranges=16)
        run_scan(snapshot, [PieceFilters(nodes, shapes)], runner=runner, ranges=ranges)


def _beside_copies(store: Store, count: int) -> Row:
    """Copies of an object while the store is scanned, and while it is not."""
    store.upload("original")
    numbers = iter(range(10**9))

    def copy_some() -> None:
        for _ in range(200):
            store.copy("original", f"copy{next(numbers) % 90}")

    over = threading.Event()

    def copy_beside() -> None:
        scanning = threading.Thread(target=lambda: _scan_until(store.url, over))
        scanning.start()
        copy_some()
        over.set()
        scanning.join()
        over.clear()

    quiet, busy = alternate(3, copy_some, copy_beside)
    return Row(
        f"copies while {10 * count:,} segments are scanned", f"{200 / busy:.0f}/s",
        f"{200 / quiet:.0f}/s without", quiet / busy, "at least 0.9", quiet / busy >= 0.9,
    )  # fmt: skip


def _scan_until(url: str, over: threading.Event) -> None:
    database = Database.open(url)
    while not over.is_set():
        filter_segments(database, ProcessRunner())  # as a server does it
    database.close()


def _repairs(objects: int) -> Row:
    """Two of eight nodes lost: repair against reading four pieces and writing two alone."""
    with tempfile.TemporaryDirectory() as place:
        roots = [f"{place}/disk{number}" for number in range(8)]
        options = StoreOptions(redundancy=Redundancy.of(4, 6), nodes=roots)
        EmbeddedStore.create(f"{place}/store", options).close()
        with open_project(f"{place}/store") as project:
            project.create_bucket("bucket")
            for number in range(objects):
                project.upload("bucket", f"k{number}", bytes(16 * MIB))
        store = EmbeddedStore.open(f"{place}/store")
        bare = _bare(store, objects)
        started = time.perf_counter()
        report = repair_store(store, RepairOptions(gone=tuple(roots[:2])))
        took = (time.perf_counter() - started) / max(report.pieces, 1)
        store.close()
    return Row(
        f"repair of {report.repaired} segments", f"{4 / took:.1f} MiB/s of pieces",
        f"{4 / bare:.1f} MiB/s read and written alone", bare / took, "at least 0.6",
        bare / took >= 0.6,
    )  # fmt: skip


def _bare(store: EmbeddedStore, objects: int) -> float:
    """Seconds for each piece that is written, when four are read for every two."""
    nodes = store.nodes.direct()
    pieces = {node: [each.piece for each in node.pieces()] for node in nodes}
    started, written = time.perf_counter(), 0
    for number in range(objects):
        chosen = [node for node in nodes if len(pieces[node]) > number][:4]
        whole = [b"".join(node.read(pieces[node][number], 0, 1 << 40)) for node in chosen]
        for node, piece in zip(chosen[:2], whole[:2], strict=False):
            node.root.write(f"bench/{number}", piece)
            written += 1
    return (time.perf_counter() - started) / max(written, 1)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)
