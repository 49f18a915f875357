"""Repair: find segments with too few healthy pieces, and build the missing ones anew.

First every node is asked whether it answers. Then a scan queues what is injured, those with the
fewest pieces left first, and the worker takes the queue. A segment with fewer pieces than are
required is lost: it is counted, with the objects that need it, and stays in the report until its
nodes are back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from calque import faults
from calque.errors import InvalidInput
from calque.store.embedded import EmbeddedStore
from calque.store.metabase.accounts.nodes import COUNTS_AS_HEALTHY, Nodes
from calque.store.metabase.engine.database import Database
from calque.store.metabase.upkeep.last_runs import note_run
from calque.store.metabase.upkeep.lease import Lease, hold_lease
from calque.store.metabase.upkeep.repair_queue import (
    InjuredSegment,
    count_repairs,
    forget_repair,
    put_off_repair,
    queue_repairs,
    worst_repairs,
)
from calque.store.metabase.upkeep.replace_pieces import (
    OwnedPieces,
    count_readers,
    find_heir,
    read_owned,
)
from calque.store.upkeep.engines import ScanOptions, open_scan
from calque.store.upkeep.heal import Healed, Healer
from calque.store.upkeep.heal_at_once import heal_at_once
from calque.store.upkeep.node_states import GONE_AFTER, NodeReport, check_nodes, find_node
from calque.store.upkeep.scan import ScanReport, Tell, run_scan
from calque.store.upkeep.segment_health import SegmentHealth

SERVICE = "repair"
_PAGE = 100
_RETRY_US = 3600 * 1_000_000
"""A repair that failed is tried again after this long."""

_SHOWN = 100
"""Lost segments that a report names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairOptions:
    """``gone_after``: a node that is silent for this long is given up. ``gone``: nodes that are
    given up at once, by the beginning of their id or their address."""

    dry_run: bool = False
    gone_after: timedelta = GONE_AFTER
    gone: tuple[str, ...] = ()
    scan: ScanOptions = field(default_factory=ScanOptions)

    def __post_init__(self) -> None:
        if self.gone_after < timedelta(0):
            raise InvalidInput("the time after which a node is gone cannot be negative")


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What a repair found and did."""

    nodes: tuple[NodeReport, ...]
    by_health: dict[str, int]
    """Segments: whole, reduced (above the threshold), injured, lost."""
    repaired: int
    failed: int
    no_room: int
    """Segments for whose pieces there are too few other nodes."""
    pieces: int
    queue: int
    lost_segments: int
    lost_objects: int
    lost: tuple[str, ...]
    scan: ScanReport
    dry_run: bool

    @property
    def is_alarming(self) -> bool:
        """Whether something is lost, or cannot be repaired now."""
        return bool(self.lost_segments or self.failed or self.no_room)


def repair_store(
    store: EmbeddedStore,
    options: RepairOptions | None = None,
    *,
    tell: Tell | None = None,
    over: Callable[[], bool] = lambda: False,
) -> RepairReport:
    """Check every segment and repair what can be. It needs no key and no passphrase.

    Safe at any time; killed anywhere, the next run goes on, and what it had written unnamed goes by
    garbage collection. FailedPrecondition while another process repairs.
    """
    options, database = options or RepairOptions(), store.endpoint.database
    gone = [find_node(store, name).node_id for name in options.gone]
    with hold_lease(database, SERVICE) as lease:
        if options.dry_run:
            nodes: list[NodeReport] = []
        else:
            nodes = check_nodes(store, gone_after=options.gone_after, gone=gone)
        health, scan = check_segments(database, options.scan, tell=tell, over=over)
        faults.point("repair.checked")
        healer, done = Healer(store), Counter[Healed]()
        if not options.dry_run:
            queue_repairs(database, health.injured)
            faults.point("repair.queued")
            done = work_queue(store, healer, lease, tell=tell, over=over)
        report = RepairReport(
            nodes=tuple(nodes),
            by_health=dict(health.by_health),
            repaired=done[Healed.DONE],
            failed=done[Healed.FAILED],
            no_room=done[Healed.NO_ROOM],
            pieces=healer.pieces_written,
            queue=count_repairs(database),
            lost_segments=health.by_health["lost"],
            lost_objects=count_readers(database, sorted({e.stream_id for e in health.lost})),
            lost=tuple(f"{e.stream_id.hex()}/{e.position}" for e in health.lost[:_SHOWN]),
            scan=scan,
            dry_run=options.dry_run,
        )
        if not options.dry_run:
            note_run(database, SERVICE, _summary(report))
    return report


def check_segments(
    database: Database,
    options: ScanOptions,
    *,
    tell: Tell | None = None,
    over: Callable[[], bool] = lambda: False,
) -> tuple[SegmentHealth, ScanReport]:
    """The health of every segment, from one snapshot; nothing is queued."""
    with open_scan(database, options) as (snapshot, runner):
        nodes = Nodes(database).all()
        healthy = {each.alias for each in nodes if each.state in COUNTS_AS_HEALTHY}
        gone = {each.alias for each in nodes if each.state == "gone"}
        observer = SegmentHealth(healthy, gone, snapshot.taken_at)
        ranges = snapshot.cut(rows_each=options.range_rows)
        report = run_scan(snapshot, [observer], runner=runner, ranges=ranges, tell=tell, over=over)
    return observer, report


def work_queue(
    store: EmbeddedStore,
    healer: Healer,
    lease: Lease,
    *,
    tell: Tell | None = None,
    over: Callable[[], bool] = lambda: False,
) -> Counter[Healed]:
    """Take the queue, the worst first, until it is empty or ``over`` says so."""
    database = store.endpoint.database
    done: Counter[Healed] = Counter()
    total = count_repairs(database)
    while page := worst_repairs(database, _PAGE):
        for healed in heal_at_once(page, partial(repair_segment, database, healer), lease, over):
            done[healed] += 1
            if tell is not None:
                tell(done.total(), max(total, done.total()))
        if over():
            break
    return done


def repair_segment(database: Database, healer: Healer, injured: InjuredSegment) -> Healed:
    """One row of the queue: healed, dropped, or left for later."""
    family = read_owned(database, injured.stream_id, injured.position)
    if family is None or family.segment.root_piece_id != injured.root_piece_id:
        # Deleted, or replaced by another upload: there is nothing to blame and nothing to do.
        forget_repair(database, injured)
        return Healed.NOTHING
    result = healer.heal(family, bad=injured.bad_pieces)
    if result in (Healed.FAILED, Healed.NO_ROOM):
        put_off_repair(database, injured, _RETRY_US)
        return result
    heir = find_heir(database, family) if result is Healed.CHANGED else None
    forget_repair(database, injured)
    _queue_heir(database, injured, heir)
    faults.point("repair.settled")
    return result


def _queue_heir(database: Database, injured: InjuredSegment, heir: OwnedPieces | None) -> None:
    """Whoever has the pieces now is looked at again; what an audit found may not hold any more."""
    if heir is not None:
        queue_repairs(
            database,
            [
                injured._replace(
                    stream_id=heir.stream_id, position=heir.position, bad_pieces=b"", not_before=0
                )
            ],
        )


def _summary(report: RepairReport) -> dict[str, object]:
    return {
        "lost_segments": report.lost_segments,
        "lost_objects": report.lost_objects,
        "queue": report.queue,
        "by_health": report.by_health,
        "silent_nodes": [each.node for each in report.nodes if not each.answers],
    }
