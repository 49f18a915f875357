"""A node leaves in good order: every piece it holds is moved, and then it is gone.

From the first moment no new piece goes there. What the node still has is read from it, or built
from the other pieces where it cannot be read. A scan says what is left; when a snapshot that was
taken after the last move shows nothing, the node may be switched off. All of it is in the metabase,
so the work can be stopped, resumed by anybody, or cancelled.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from calque import faults
from calque.errors import FailedPrecondition, IntegrityError
from calque.store.embedded import EmbeddedStore
from calque.store.metabase.accounts.nodes import STATES_BELIEVED_S, NodeRecord, Nodes
from calque.store.metabase.engine.database import Database
from calque.store.metabase.model.packed_pieces import unpack
from calque.store.metabase.scan import Snapshot
from calque.store.metabase.upkeep.last_runs import last_run, note_run
from calque.store.metabase.upkeep.lease import hold_lease
from calque.store.metabase.upkeep.replace_pieces import read_owned
from calque.store.upkeep.engines import ScanOptions, open_scan
from calque.store.upkeep.heal import Healed, Healer
from calque.store.upkeep.heal_at_once import heal_at_once
from calque.store.upkeep.node_states import find_node
from calque.store.upkeep.scan import Batch, Over, Tell, run_scan

SERVICE = "exit"
MOST_A_RANGE = 20_000
"""Segments that one range names at most; the next scan finds the others."""

_log = logging.getLogger(__name__)

_PASSES = 100
_NOTED_EVERY_S = 1.0


class HeldSegment(NamedTuple):
    """A segment with a piece on the node that leaves."""

    stream_id: bytes
    position: int


@dataclass
class PiecesOfNode:
    """An observer of the segments that have a piece on one node; each physical piece once."""

    alias: int
    most: int = MOST_A_RANGE
    columns: tuple[str, ...] = ("stream_id", "position", "remote_alias_pieces")
    held: list[HeldSegment] = field(default_factory=list)
    count: int = 0

    def start(self, snapshot: Snapshot) -> None:
        """Nothing to prepare."""

    def fork(self) -> _NodeFork:
        return _NodeFork(self.alias, self.most)

    def join(self, result: tuple[int, list[HeldSegment]]) -> None:
        self.count += result[0]
        self.held += result[1]

    def finish(self) -> None:
        self.held.sort()


class _NodeFork:
    def __init__(self, alias: int, most: int) -> None:
        self._alias, self._most = alias, most
        self._count = 0
        self._held: list[HeldSegment] = []

    def process(self, batch: Batch) -> None:
        for stream_id, position, packed in zip(
            *(batch[name] for name in PiecesOfNode.columns), strict=True
        ):
            if packed is not None and self._may_hold(packed):
                self._count += 1
                if len(self._held) < self._most:
                    self._held.append(HeldSegment(stream_id, position))

    def _may_hold(self, packed: bytes) -> bool:
        """Also where the list is damaged: nobody can tell, so the node is not done."""
        try:
            return any(alias == self._alias for _, alias in unpack(packed))
        except IntegrityError:
            return True

    def result(self) -> tuple[int, list[HeldSegment]]:
        return self._count, self._held


@dataclass(frozen=True, slots=True)
class ExitReport:
    """How far a node is with leaving."""

    node: str
    state: str
    moved: int
    left: int
    """Pieces that are still there, by the last snapshot."""
    failed: int
    no_room: int
    dry_run: bool = False

    @property
    def is_done(self) -> bool:
        return self.state == "gone"


class ExitProgress(NamedTuple):
    """Pieces that a node which leaves has given away since it was last gone on with, and has."""

    moved: int
    left: int


def exit_progress(database: Database, node: NodeRecord) -> ExitProgress | None:
    """How far a node is with leaving, whoever empties it; None before its pieces are counted."""
    noted = last_run(database, _progress_of(node))
    return ExitProgress(**noted.report) if noted and noted.report else None


def exit_node(
    store: EmbeddedStore,
    name: str,
    *,
    dry_run: bool = False,
    scan: ScanOptions | None = None,
    tell: Tell | None = None,
    over: Callable[[], bool] = lambda: False,
) -> ExitReport:
    """Empty a node and give it up; NotFound when there is none of that name.

    Ends when a snapshot shows no piece there, or when the pieces that are left cannot be moved now:
    then the report says so, and calling again goes on. FailedPrecondition for a node that is gone.
    """
    database, options = store.endpoint.database, scan or ScanOptions()
    record = find_node(store, name)
    if record.state == "gone":
        raise FailedPrecondition(
            f"node {record.name} is gone already", hint="`calque store repair` replaces its pieces."
        )
    if dry_run:
        left = _scan_node(database, record, options, tell, over).count
        return ExitReport(record.name, record.state, 0, left, 0, 0, dry_run=True)
    with hold_lease(database, f"{SERVICE} {record.name}") as lease:
        nodes = Nodes(database)
        left_at = record.left_at or database.clock()
        while nodes.get(record.node_id).state != "exiting":  # somebody else may change it, too
            nodes.set_state(record.node_id, "exiting", left_at=left_at)
        note_run(database, _progress_of(record), {})
        faults.point("exit.begun")
        # Uploads of other processes have heard of it by then.
        time.sleep(2 * STATES_BELIEVED_S)
        healer, done = Healer(store), Counter[Healed]()
        for _ in range(_PASSES):
            found = _scan_node(database, record, options, tell, over)
            if not found.count:
                nodes.set_state(record.node_id, "gone", left_at=database.clock())
                break
            moved, before = Counter[Healed](), done.total()
            noted_at = _note_progress(database, record, ExitProgress(before, found.count))
            move = partial(_move, database, healer, record)
            for healed in heal_at_once(found.held, move, lease, over):
                moved[healed] += 1
                if tell is not None:
                    tell(moved.total(), found.count)
                if time.monotonic() - noted_at > _NOTED_EVERY_S:
                    told = moved.total()
                    progress = ExitProgress(before + told, max(found.count - told, 0))
                    noted_at = _note_progress(database, record, progress)
            done.update(moved)
            # Without any progress another scan would find the same.
            if over() or not (moved[Healed.DONE] or moved[Healed.NOTHING] or moved[Healed.CHANGED]):
                break
        report = ExitReport(
            record.name,
            nodes.get(record.node_id).state,
            healer.pieces_written,
            found.count,
            done[Healed.FAILED],
            done[Healed.NO_ROOM],
        )
        note_run(database, SERVICE, {"node": report.node, "left": report.left})
    return report


def cancel_exit(store: EmbeddedStore, name: str, *, dry_run: bool = False) -> NodeRecord:
    """The node stays after all, with what it has; FailedPrecondition unless it is leaving."""
    record = find_node(store, name)
    _require_leaving(record)
    if dry_run:
        return record
    with hold_lease(store.endpoint.database, f"{SERVICE} {record.name}"):
        nodes = Nodes(store.endpoint.database)
        # It may have left by now: then its disk may be switched off at any moment.
        _require_leaving(nodes.get(record.node_id))
        nodes.set_state(record.node_id, "ok", was="exiting")
        return nodes.get(record.node_id)


def _require_leaving(record: NodeRecord) -> None:
    if record.state != "exiting":
        raise FailedPrecondition(
            f"node {record.name} is {record.state}: there is nothing to cancel"
        )


def resume_exits(store: EmbeddedStore, over: Callable[[], bool]) -> list[ExitReport]:
    """Go on with every node that is leaving, but for those that another process empties."""
    reports = []
    for each in store.endpoint.admin.nodes():
        if each.state == "exiting":
            try:
                reports.append(exit_node(store, each.node_id.hex(), over=over))
            except FailedPrecondition as error:
                _log.info("node %s is left out: %s", each.name, error)
    return reports


def _progress_of(node: NodeRecord) -> str:
    return f"{SERVICE} of {node.name}"


def _note_progress(database: Database, node: NodeRecord, progress: ExitProgress) -> float:
    """Tell those who look from elsewhere; when that was."""
    note_run(database, _progress_of(node), progress._asdict(), among_past=False)
    return time.monotonic()


def _scan_node(
    database: Database, record: NodeRecord, options: ScanOptions, tell: Tell | None, over: Over
) -> PiecesOfNode:
    with open_scan(database, options) as (snapshot, runner):
        observer = PiecesOfNode(record.alias)
        ranges = snapshot.cut(rows_each=options.range_rows)
        run_scan(snapshot, [observer], runner=runner, ranges=ranges, tell=tell, over=over)
    return observer


def _move(database: Database, healer: Healer, record: NodeRecord, held: HeldSegment) -> Healed:
    family = read_owned(database, held.stream_id, held.position)
    # Deleted since, or inherited by a copy, which the next scan shows.
    done = Healed.NOTHING if family is None else healer.move(family, record.node_id)
    faults.point("exit.moved")
    return done
