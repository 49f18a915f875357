"""The end of loads that are not in the table."""

from __future__ import annotations

from calque.ledger import Ledger, TableRow
from calque.ledger.abort import abort
from calque.ledger.files import mget
from calque.ledger.history import find_load
from calque.ledger.manifest import Manifest
from tests.ledger.filling import begin, identity, load


def test_abort_keeps_the_earlier_record(ledger: Ledger, table: TableRow) -> None:
    """A changed file whose new load is aborted still has the record of its earlier one."""
    load(ledger, table, "A", ["a"])
    begin(ledger, table, "B", [identity("a", etag="new")])
    assert abort(ledger, "B", "given up", Manifest())
    assert not abort(ledger, "B", "given up", Manifest())
    assert mget(ledger, table, ["a"])["a"].load_id == "A"
    assert find_load(ledger, "B").message == "given up"
