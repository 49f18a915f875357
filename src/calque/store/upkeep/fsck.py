"""Is a store whole? Its rows against each other, and its pieces against its rows."""

from __future__ import annotations

from datetime import timedelta

from calque.store.embedded import EmbeddedStore
from calque.store.metabase.fsck import Finding, PackedRows, compare_rows, known_aliases
from calque.store.metabase.model.records import moment
from calque.store.metabase.objects.physical_segments import PhysicalRecord, physical_segments
from calque.store.metabase.upkeep.last_runs import note_run
from calque.store.metabase.upkeep.lease import hold_lease
from calque.store.metabase.upkeep.mend import Mended, mend
from calque.store.nodes.check import COMMIT_WINDOW, PhysicalSegment, check_pieces
from calque.store.nodes.pieces import piece_id
from calque.store.upkeep.backup import redundancy_of
from calque.store.upkeep.engines import ScanOptions, open_scan
from calque.store.upkeep.scan import Tell, run_scan

SERVICE = "fsck"


def check_store(
    store: EmbeddedStore,
    *,
    young: bool = False,
    nodes: bool = True,
    scan: ScanOptions | None = None,
    tell: Tell | None = None,
) -> list[Finding]:
    """Everything that is wrong; an empty list means whole. Nothing is changed.

    Pieces younger than the commit window may belong to uploads under way and are no orphans,
    unless ``young`` says that nothing runs. Without ``nodes`` only rows are looked at.
    """
    findings = check_rows(store, scan, tell=tell)
    return [*findings, *_check_nodes(store, young)] if nodes else findings


def check_rows(
    store: EmbeddedStore, scan: ScanOptions | None = None, *, tell: Tell | None = None
) -> list[Finding]:
    """Rows against rows, in one snapshot and in flat memory."""
    options = scan or ScanOptions()
    with open_scan(store.endpoint.database, options) as (snapshot, runner):
        packed = PackedRows(known_aliases(snapshot))
        ranges = snapshot.cut(rows_each=options.range_rows)
        run_scan(snapshot, [packed], runner=runner, ranges=ranges, tell=tell)
        return [*compare_rows(snapshot), *packed.findings]


def mend_store(store: EmbeddedStore, findings: list[Finding]) -> list[Mended]:
    """Mend what is safe: references without use, leftover keys, usage. The rest stays as it is."""
    with hold_lease(store.endpoint.database, SERVICE):
        return mend(store.endpoint.database, findings)


def note_findings(store: EmbeddedStore, findings: list[Finding]) -> None:
    """What was found is what doctor tells until the next time."""
    kinds = sorted({each.kind for each in findings})
    note_run(store.endpoint.database, SERVICE, {"findings": len(findings), "kinds": kinds})


def _check_nodes(store: EmbeddedStore, young: bool) -> list[Finding]:
    database = store.endpoint.database
    segments = [_physical(each) for each in physical_segments(database)]
    on_nodes = check_pieces(
        segments,
        store.nodes.direct(),
        waiting=[
            (node_id, piece_id(each.root_piece_id, node_id, number))
            for each in store.endpoint.list_waiting_pieces()
            for number, node_id, _ in each.pieces
        ],
        now=moment(database.clock()),
        window=timedelta(0) if young else COMMIT_WINDOW,
    )
    return [Finding(*each) for each in on_nodes]


def _physical(record: PhysicalRecord) -> PhysicalSegment:
    expires = record.expires_at
    return PhysicalSegment(
        root_piece_id=record.root_piece_id,
        encrypted_size=record.encrypted_size,
        redundancy=redundancy_of(record),
        pieces=record.pieces,
        expires=None if expires is None else moment(expires),
    )
