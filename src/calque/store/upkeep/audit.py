"""Audit: do the nodes still have what they took? Random stripes, and blame only where it is due.

A segment that was deleted, moved or repaired while it was looked at is dropped. A node that says
nothing is asked again, three times over a day, before that counts. A wrong piece is queued for
repair, and a node that often gives wrong ones is failing: it gets no new pieces, and those that it
has are replaced.
"""

from __future__ import annotations

import logging
import secrets
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from calque import faults
from calque.errors import IntegrityError, InvalidInput
from calque.store.chunks import Buffer
from calque.store.embedded import EmbeddedStore
from calque.store.metabase.accounts.nodes import NodeRecord, Nodes
from calque.store.metabase.engine.database import Database
from calque.store.metabase.model.records import Redundancy as StoredRedundancy
from calque.store.metabase.upkeep.last_runs import note_run
from calque.store.metabase.upkeep.lease import Lease, hold_lease
from calque.store.metabase.upkeep.repair_queue import InjuredSegment, queue_repairs
from calque.store.metabase.upkeep.replace_pieces import OwnedPieces, read_owned
from calque.store.metabase.upkeep.silent_audits import (
    SilentAudit,
    due_audits,
    forget_silent,
    keep_silent,
    note_silent,
)
from calque.store.nodes.erasure import Coder, Redundancy
from calque.store.nodes.node import Node
from calque.store.nodes.units import Stripes
from calque.store.upkeep.audit_sample import SLOTS, AuditSample
from calque.store.upkeep.audit_stripe import Answer, ask_for_share, find_liars
from calque.store.upkeep.engines import ScanOptions, open_scan
from calque.store.upkeep.scan import ScanReport, Tell, run_scan

_log = logging.getLogger(__name__)

SERVICE = "audit"
TRIES = 3
ASK_AGAIN_US = 8 * 3600 * 1_000_000

FAILING_AT, FAILING_SHARE = 3, 0.05
"""So many wrong answers, and this share of all: then a node is failing."""


@dataclass(frozen=True, slots=True)
class NodeAudit:
    """What was found of one node."""

    node: str
    state: str
    good: int
    wrong: int
    silent: int


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What an audit found."""

    segments: int
    dropped: int
    """Segments that changed while they were looked at."""
    nodes: tuple[NodeAudit, ...]
    scan: ScanReport
    dry_run: bool = False

    @property
    def is_alarming(self) -> bool:
        return any(each.wrong for each in self.nodes)


@dataclass
class _Findings:
    """Answers by node id."""

    answers: dict[bytes, Counter[Answer]] = field(default_factory=lambda: defaultdict(Counter))
    dropped: int = 0


def audit_store(
    store: EmbeddedStore,
    *,
    slots: int = SLOTS,
    dry_run: bool = False,
    scan: ScanOptions | None = None,
    tell: Tell | None = None,
    over: Callable[[], bool] = lambda: False,
) -> AuditReport:
    """Look at a random stripe of some segments of each node.

    A dry run reads the same and blames nobody. FailedPrecondition while another process audits.
    """
    database, options = store.endpoint.database, scan or ScanOptions()
    with hold_lease(database, SERVICE) as lease:
        with open_scan(database, options) as (snapshot, runner):
            sample = AuditSample(secrets.token_bytes(16), snapshot.taken_at, slots)
            ranges = snapshot.cut(rows_each=options.range_rows)
            report = run_scan(
                snapshot, [sample], runner=runner, ranges=ranges, tell=tell, over=over
            )
        auditor = Auditor(store, lease, dry_run=dry_run)
        for due in due_audits(database):
            auditor.ask_again(due)
        for number, (stream_id, position) in enumerate(sample.segments):
            if over():
                break
            auditor.audit(stream_id, position)
            if tell is not None:
                tell(number + 1, len(sample.segments))
        nodes = auditor.settle()
        done = AuditReport(len(sample.segments), auditor.findings.dropped, nodes, report, dry_run)
        if not dry_run:
            note_run(database, SERVICE, _summary(done))
    return done


class Auditor:
    """Looks at segments of one store, and keeps what it found until :meth:`settle`."""

    def __init__(self, store: EmbeddedStore, lease: Lease, *, dry_run: bool = False) -> None:
        self._store, self._lease, self._dry_run = store, lease, dry_run
        self._database = store.endpoint.database
        self._nodes = Nodes(self._database)
        self.findings = _Findings()

    def audit(self, stream_id: bytes, position: int) -> None:
        """A random stripe of a segment, from every node that has a piece of it."""
        self._lease.require()
        family = read_owned(self._database, stream_id, position)
        if family is None:
            self.findings.dropped += 1
            return
        segment = family.segment
        coder = self._coder_of(segment)
        if coder is None:
            self.findings.dropped += 1
            return
        count = -(-segment.encrypted_size // coder.redundancy.stripe_size)
        stripe = secrets.randbelow(count)
        faults.point("audit.chosen")
        answers, shares = self._ask_all(segment, coder, stripe)
        one = Stripes(coder, segment.encrypted_size, stripe, 1)
        for number in find_liars(coder, shares, one.size_of(stripe)):
            answers[number] = "wrong"
        faults.point("audit.asked")
        if self._has_changed(segment):
            self.findings.dropped += 1
            return
        self._note(segment, stripe, answers)

    def ask_again(self, due: SilentAudit) -> None:
        """A piece whose node said nothing: one more silence may be the last that does not count."""
        self._lease.require()
        family = read_owned(self._database, due.stream_id, due.position)
        coder = self._coder_of(family.segment) if family else None
        placed = self._nodes.unpack(family.segment.alias_pieces) if family and coder else []
        mine = [(number, record) for number, record in placed if record.alias == due.alias]
        if not (family and coder and mine) or family.segment.root_piece_id != due.root_piece_id:
            self._forget(due)  # deleted or repaired since: nobody is blamed
            return
        (number, record), segment = mine[0], family.segment
        stripes = Stripes(coder, segment.encrypted_size, due.stripe, 1)
        node = self._node(record)
        answer: Answer = "silent"
        if node is not None:
            answer, _ = ask_for_share(node, segment.root_piece_id, number, stripes)
        if answer == "silent" and due.tries + 1 < TRIES:
            self.findings.answers[record.node_id]["silent"] += 1
            self._keep(due._replace(tries=due.tries + 1), keep_silent)
            return
        self._forget(due)
        if not self._has_changed(segment):
            answer = "wrong" if answer == "silent" else answer
            self._note(segment, due.stripe, {number: answer})

    def settle(self) -> tuple[NodeAudit, ...]:
        """Count what was found, and note which nodes are failing by now."""
        for node_id, found in self.findings.answers.items():
            if not self._dry_run:
                self._nodes.count_audits(node_id, found["good"], found["wrong"])
        self._nodes.refresh()
        for record in self._nodes.all():
            if not self._dry_run and _is_failing(record):
                self._nodes.set_state(
                    record.node_id, "failing", left_at=record.left_at, was=record.state
                )
        return tuple(
            NodeAudit(record.name, record.state, found["good"], found["wrong"], found["silent"])
            for record in self._nodes.all()
            if (found := self.findings.answers.get(record.node_id, Counter())) is not None
        )

    def _coder_of(self, segment: OwnedPieces) -> Coder | None:
        """How the segment is coded; None where its row is damaged, for which no node is blamed."""
        try:
            self._nodes.unpack(segment.check().alias_pieces)
            return Coder(Redundancy(**StoredRedundancy.decode(segment.redundancy)._asdict()))
        except (IntegrityError, InvalidInput) as error:
            _log.warning("segment %s/%d: %s", segment.stream_id.hex(), segment.position, error)
            return None

    def _ask_all(
        self, segment: OwnedPieces, coder: Coder, stripe: int
    ) -> tuple[dict[int, Answer], dict[int, Buffer]]:
        stripes = Stripes(coder, segment.encrypted_size, stripe, 1)
        answers: dict[int, Answer] = {}
        shares: dict[int, Buffer] = {}
        for number, record in self._nodes.unpack(segment.alias_pieces):
            node = self._node(record)
            # A node that is gone is no news; its pieces are for repair to replace.
            if node is None or record.state == "gone":
                continue
            answers[number], share = ask_for_share(node, segment.root_piece_id, number, stripes)
            if share is not None:
                shares[number] = share
        return answers, shares

    def _note(self, segment: OwnedPieces, stripe: int, answers: dict[int, Answer]) -> None:
        records = dict(self._nodes.unpack(segment.alias_pieces))
        for number, answer in answers.items():
            self.findings.answers[records[number].node_id][answer] += 1
            if answer == "silent":
                self._keep(
                    SilentAudit(
                        records[number].alias, segment.stream_id, segment.position,
                        segment.root_piece_id, stripe, 0, 0,
                    ),
                    note_silent,
                )  # fmt: skip
        wrong = bytes(sorted(number for number, answer in answers.items() if answer == "wrong"))
        if wrong and not self._dry_run:
            healthy = len(records) - len(wrong)
            queue_repairs(
                self._database,
                [
                    InjuredSegment(
                        segment.stream_id, segment.position, segment.root_piece_id, healthy, wrong
                    )
                ],
            )

    def _has_changed(self, segment: OwnedPieces) -> bool:
        now = read_owned(self._database, segment.stream_id, segment.position)
        return now is None or now.segment != segment

    def _keep(self, silent: SilentAudit, keep: Callable[[Database, SilentAudit], None]) -> None:
        if not self._dry_run:
            again = self._database.clock() + ASK_AGAIN_US
            keep(self._database, silent._replace(next_at=again))

    def _forget(self, done: SilentAudit) -> None:
        if not self._dry_run:
            forget_silent(self._database, done)

    def _node(self, record: NodeRecord) -> Node | None:
        found = self._store.nodes.get(record.node_id, record.address, record.placement)
        return found if isinstance(found, Node) else None


def _is_failing(record: NodeRecord) -> bool:
    asked = record.audits_good + record.audits_wrong
    return (
        record.state in ("ok", "silent")
        and record.audits_wrong >= FAILING_AT
        and record.audits_wrong >= FAILING_SHARE * asked
    )


def _summary(report: AuditReport) -> dict[str, object]:
    return {
        "good": sum(each.good for each in report.nodes),
        "wrong": sum(each.wrong for each in report.nodes),
        "silent": sum(each.silent for each in report.nodes),
        "failing_nodes": [each.node for each in report.nodes if each.state == "failing"],
    }
