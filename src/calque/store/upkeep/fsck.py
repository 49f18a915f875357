"""Is a store whole? Its rows against each other, and its pieces against its rows."""

from __future__ import annotations

from contextlib import closing

from calque.store.embedded import EmbeddedStore
from calque.store.metabase.fsck import Finding, PackedRows, compare_rows, known_aliases
from calque.store.metabase.upkeep.last_runs import note_run
from calque.store.metabase.upkeep.lease import hold_lease
from calque.store.metabase.upkeep.mend import Mended, mend
from calque.store.satellite.freed_pieces import never_over
from calque.store.upkeep.engines import ScanOptions, open_scan
from calque.store.upkeep.scan import Observer, Over, Tell, run_scan
from calque.store.upkeep.stored_pieces import PieceCheck, expect_pieces

SERVICE = "fsck"


def check_store(
    store: EmbeddedStore,
    *,
    young: bool = False,
    nodes: bool = True,
    scan: ScanOptions | None = None,
    tell: Tell | None = None,
    over: Over = never_over,
) -> list[Finding]:
    """Everything that is wrong; an empty list means whole. Nothing is changed. Aborted when
    ``over`` said so: what was found is not all that there is.

    Pieces younger than the commit window may belong to uploads under way and are no orphans,
    unless ``young`` says that nothing runs. Without ``nodes`` only rows are looked at.
    """
    options = scan or ScanOptions()
    with closing(expect_pieces(store)) as expected:
        with open_scan(store.endpoint.database, options) as (snapshot, runner):
            packed = PackedRows(known_aliases(snapshot))
            observers: list[Observer] = [packed, expected] if nodes else [packed]
            ranges = snapshot.cut(rows_each=options.range_rows)
            run_scan(snapshot, observers, runner=runner, ranges=ranges, tell=tell, over=over)
            findings = [*compare_rows(snapshot), *packed.findings]
        # The snapshot is let go of first: to list nodes may take hours.
        if nodes:
            findings += PieceCheck(store, expected, young, over).run()
    return findings


def mend_store(store: EmbeddedStore, findings: list[Finding]) -> list[Mended]:
    """Mend what is safe: references without use, leftover keys, usage. The rest stays as it is."""
    with hold_lease(store.endpoint.database, SERVICE):
        return mend(store.endpoint.database, findings)


def note_findings(store: EmbeddedStore, findings: list[Finding]) -> None:
    """What was found is what doctor tells until the next time."""
    kinds = sorted({each.kind for each in findings})
    note_run(store.endpoint.database, SERVICE, {"findings": len(findings), "kinds": kinds})
