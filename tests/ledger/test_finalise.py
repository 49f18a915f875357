"""The end of loads that are in the table, in whatever order they are finalised."""

from __future__ import annotations

from dataclasses import replace

from calque.ledger import Ledger, TableRow
from calque.ledger.files import mget, parts_of, scan
from calque.ledger.finalise import finalise
from calque.ledger.history import find_load
from calque.ledger.manifest import Manifest
from calque.ledger.prepare import prepare
from calque.ledger.schema import claims
from tests.ledger.filling import OWNER, begin, held, load, manifest


def test_finalise_is_done_once(ledger: Ledger, table: TableRow) -> None:
    """The second finalise of a load finds it done."""
    begin(ledger, table, "A", ["a"])
    prepare(ledger, "A", OWNER, manifest(ledger, ["a"]))
    assert finalise(ledger, "A", 3)
    assert not finalise(ledger, "A", 3)
    assert held(ledger) == {}
    assert find_load(ledger, "A").state == "COMMITTED"


def test_late_finalise_of_an_older_commit(ledger: Ledger, table: TableRow) -> None:
    """Two FORCE loads finalised in the wrong order leave the record of the newer commit."""
    for name in ("old", "new"):
        begin(ledger, table, name, ["a"], force=True)
        prepare(ledger, name, OWNER, manifest(ledger, ["a"]))
        with ledger.write() as connection:
            connection.execute(claims.delete())
    finalise(ledger, "new", 8)
    finalise(ledger, "old", 7)
    assert mget(ledger, table, ["a"])["a"].load_id == "new"


def test_truncate_clears_only_what_came_before(ledger: Ledger, table: TableRow) -> None:
    """A commit after the truncate keeps its record, one before it gets none, even if late."""
    load(ledger, table, "A", ["a"], version=1)
    begin(ledger, table, "late", ["late"])
    prepare(ledger, "late", OWNER, manifest(ledger, ["late"]))
    load(ledger, table, "C", ["c"], version=4)
    begin(ledger, table, "T", [])
    prepare(ledger, "T", OWNER, Manifest(truncate=True))
    finalise(ledger, "T", 3)
    finalise(ledger, "late", 2)
    assert [one.location for one in scan(ledger, table)] == ["c"]


def test_a_late_finalise_moves_no_newer_rows(ledger: Ledger, table: TableRow) -> None:
    """Rows that a load moved are those of earlier loads: a newer record keeps its own places."""
    load(ledger, table, "A", ["a", "b", "c"], version=1)
    begin(ledger, table, "late", ["a"], force=True)
    moved = dict.fromkeys("bc", (("kept.parquet", 0, 3),))
    prepare(ledger, "late", OWNER, replace(manifest(ledger, ["a"]), moved=moved))
    load(ledger, table, "B", ["b"], version=3)
    finalise(ledger, "late", 2)
    parts = parts_of(ledger, table, ["b", "c"])
    assert "kept.parquet" not in str(parts["b"])
    assert "kept.parquet" in str(parts["c"])
