"""Garbage collection: pieces that no segment names go to the trash of their node, then for good.

Killed uploads leave such pieces, and so do repairs that came too late and nodes that were away when
something was deleted. What stays is said by a filter for each node, made from **one snapshot**: a
copy is young while its pieces are old, so no age protects them if its original is deleted while the
rows are read; only that every row is of one moment does. What is written after the snapshot is
protected by its age: pieces younger than the commit window stay.
"""

from __future__ import annotations

import logging
import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from calque import faults
from calque.errors import CalqueError, InvalidInput
from calque.store.embedded import EmbeddedStore
from calque.store.metabase.accounts.nodes import Nodes
from calque.store.metabase.accounts.projects import keep_setting
from calque.store.metabase.model.records import moment
from calque.store.metabase.scan import RANGE_ROWS, Snapshot
from calque.store.metabase.upkeep.last_runs import last_run, note_run
from calque.store.metabase.upkeep.lease import Lease, hold_lease
from calque.store.nodes.bloom import FALSE_POSITIVES, BloomShape
from calque.store.nodes.commit_window import COMMIT_WINDOW
from calque.store.nodes.node import Node
from calque.store.nodes.piece_filter import PieceFilter
from calque.store.nodes.sweeps import sweep_node
from calque.store.nodes.trash import (
    KEPT,
    collect_garbage,
    empty_trash,
    remove_unfinished,
    restore_trash,
)
from calque.store.upkeep.engines import ScanOptions, open_scan
from calque.store.upkeep.piece_filters import PieceCounts, PieceFilters
from calque.store.upkeep.scan import ScanReport, Tell, run_scan, sample_scan

SERVICE = "gc"
STORE_ID = "store_id"
_SAMPLE = 8
_ROOM = 1.1
"""Filters are made a tenth larger than the sample says."""

_RANGE_PIECES = 300_000
"""Pieces of a range at most: 16 bytes each are held, sent and joined at once."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class GcOptions:
    """``window``: pieces younger than the snapshot less this stay. ``many``: take pieces away even
    where most of a node's would go. ``empty_after``: how long the trash is kept."""

    dry_run: bool = False
    many: bool = False
    window: timedelta = COMMIT_WINDOW
    empty_after: timedelta = KEPT
    false_positives: float = FALSE_POSITIVES
    scan: ScanOptions = field(default_factory=ScanOptions)

    def __post_init__(self) -> None:
        if self.window < timedelta(0) or self.empty_after < timedelta(0):
            raise InvalidInput("the times of a garbage collection cannot be negative")


@dataclass(frozen=True, slots=True)
class NodeGarbage:
    """What one node did; ``error`` says why it did nothing."""

    node: str
    kept: int = 0
    young: int = 0
    trashed: int = 0
    trashed_bytes: int = 0
    emptied: int = 0
    filter_bytes: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class GcReport:
    """What a garbage collection did."""

    nodes: tuple[NodeGarbage, ...]
    scan: ScanReport
    dry_run: bool

    @property
    def trashed(self) -> int:
        return sum(each.trashed for each in self.nodes)

    @property
    def filter_bytes(self) -> int:
        return sum(each.filter_bytes for each in self.nodes)


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of one snapshot, as they are sent, by node id."""

    by_node: dict[bytes, bytes]
    store_id: bytes
    run: int
    scan: ScanReport


def collect_store(
    store: EmbeddedStore,
    options: GcOptions | None = None,
    *,
    tell: Tell | None = None,
    over: Callable[[], bool] = lambda: False,
) -> GcReport:
    """Collect the garbage of every node that answers; the others keep theirs until the next run.

    Nothing is deleted but what has been in the trash for ``empty_after``. FailedPrecondition while
    another process collects. Killed anywhere, the next run goes on.
    """
    options, database = options or GcOptions(), store.endpoint.database
    with hold_lease(database, SERVICE) as lease:
        filters = make_filters(store, options, tell=tell, over=over)
        faults.point("gc.filters")
        lease.require()
        now = moment(database.clock())
        done = [
            (node.id, _collect_node(store, node, filters, options, now, lease, over))
            for node in store.own_nodes()
        ]
        # One that left may be there still; of one that is given up no answer is expected.
        gone = {each.node_id for each in Nodes(database).at(0, {"gone"})}
        report = GcReport(
            tuple(each for node_id, each in done if not (each.error and node_id in gone)),
            filters.scan,
            options.dry_run,
        )
        if not options.dry_run:
            note_run(database, SERVICE, _summary(report, filters))
    return report


def make_filters(
    store: EmbeddedStore,
    options: GcOptions,
    *,
    tell: Tell | None = None,
    over: Callable[[], bool] = lambda: False,
) -> Filters:
    """The filter of every node, from one snapshot; nothing is sent."""
    database = store.endpoint.database
    store_id = keep_setting(database, STORE_ID, secrets.token_bytes(16))
    with open_scan(database, options.scan) as (snapshot, runner):
        nodes = {each.alias: each.node_id for each in Nodes(database).all()}
        sample = _sample_pieces(snapshot, options.scan)
        observer = PieceFilters(nodes, _shapes(snapshot, nodes, sample, options))
        ranges = snapshot.cut(rows_each=options.scan.range_rows or sample.range_rows)
        report = run_scan(snapshot, [observer], runner=runner, ranges=ranges, tell=tell, over=over)
    older_than = snapshot.taken_at - int(options.window.total_seconds() * 1_000_000)
    before = last_run(database, SERVICE)
    # By the time, so that it rises even where the database was put back from an older day.
    run = max(snapshot.taken_at, 0 if before is None else int(before.report["run"]) + 1)
    by_node = {}
    while observer.filters:  # one after the other: all of them are never there twice
        alias, pieces = observer.filters.popitem()
        sent = PieceFilter(store_id, nodes[alias], run, older_than, pieces)
        by_node[nodes[alias]] = sent.to_bytes()
    return Filters(by_node, store_id, run, report)


@dataclass(frozen=True, slots=True)
class NodeRestored:
    """What came back on one node; ``error`` says why nothing did."""

    node: str
    restored: int = 0
    error: str = ""


def restore_garbage(store: EmbeddedStore, *, dry_run: bool = False) -> list[NodeRestored]:
    """Bring back what is in the trash of every node that answers."""
    with hold_lease(store.endpoint.database, SERVICE):
        return [_restore_node(node, dry_run) for node in store.own_nodes()]


def _restore_node(node: Node, dry_run: bool) -> NodeRestored:
    try:
        restored = sweep_node(node, partial(restore_trash, dry_run=dry_run))
        return NodeRestored(node.name, restored)
    except CalqueError as error:
        return NodeRestored(node.name, error=error.message)


@dataclass(frozen=True, slots=True)
class _Sample:
    """Pieces of each node, by alias, in some of the rows."""

    rows: int
    pieces: Counter[int]

    @property
    def range_rows(self) -> int:
        """Rows of a range that has no more pieces than can well be sent at once."""
        total = self.pieces.total()
        return min(max(_RANGE_PIECES * self.rows // total, 1), RANGE_ROWS) if total else RANGE_ROWS


def _sample_pieces(snapshot: Snapshot, options: ScanOptions) -> _Sample:
    ranges = snapshot.cut(rows_each=options.range_rows)
    counts = PieceCounts()
    rows = sample_scan(snapshot, [counts], ranges[:: max(len(ranges) // _SAMPLE, 1)])
    return _Sample(rows, counts.pieces)


def _shapes(
    snapshot: Snapshot, nodes: dict[int, bytes], sample: _Sample, options: GcOptions
) -> dict[int, BloomShape]:
    """Sized by the pieces in a sample; one seed for all, new in each run.

    A filter that turns out too small lets more garbage pass, and no piece is lost by it.
    """
    scale = _ROOM * snapshot.rows / sample.rows if sample.rows else 1.0
    seed = secrets.randbits(64)
    return {
        alias: BloomShape.of(int(sample.pieces[alias] * scale), seed, options.false_positives)
        for alias in nodes
    }


def _collect_node(
    store: EmbeddedStore,
    node: Node,
    filters: Filters,
    options: GcOptions,
    now: datetime,
    lease: Lease,
    over: Callable[[], bool],
) -> NodeGarbage:
    def should_stop() -> bool:
        lease.require()
        return over() or store.endpoint.are_pieces_on_hold

    if should_stop():
        return NodeGarbage(node.name, error="a backup needs every piece, or there is no time left")
    data = filters.by_node.get(node.id, b"")

    def collect(node: Node) -> NodeGarbage:
        done = collect_garbage(
            node, data, filters.store_id, now,
            dry_run=options.dry_run, many=options.many, stopped=should_stop,
        )  # fmt: skip
        emptied = empty_trash(node, now, kept=options.empty_after, dry_run=options.dry_run)
        unfinished = remove_unfinished(node, now, dry_run=options.dry_run)
        _log.debug("node %s had %d unfinished writes", node.name, unfinished)
        return NodeGarbage(
            node.name, done.kept, done.young, done.trashed, done.trashed_bytes, emptied, len(data)
        )

    try:
        return sweep_node(node, collect)
    except CalqueError as error:
        _log.warning("the garbage of node %s waits: %s", node.name, error)
        return NodeGarbage(node.name, error=error.message)


def _summary(report: GcReport, filters: Filters) -> dict[str, object]:
    return {
        "run": filters.run,
        "trashed": report.trashed,
        "filter_bytes": report.filter_bytes,
        "failed_nodes": [each.node for each in report.nodes if each.error],
    }
