"""Claims: a file has one holder."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import select

from calque.errors import (
    AlreadyExists,
    CalqueError,
)
from calque.ledger import Ledger, TableRow
from calque.ledger.abort import abort
from calque.ledger.claim import LoadStart, Wanted, claim
from calque.ledger.manifest import Manifest
from calque.ledger.schema import loads
from tests.ledger.filling import OWNER, begin, held, identity, load


def test_claim_grants_what_nobody_holds(ledger: Ledger, table: TableRow) -> None:
    """A file has one holder; others are told who."""
    assert begin(ledger, table, "A", ["a", "b"]).granted == ("a", "b")
    second = begin(ledger, table, "B", ["b", "c"])
    assert second.granted == ("c",)
    assert second.held == {"b": "A"}
    assert held(ledger) == {"a": "A", "b": "A", "c": "B"}


def test_claim_sees_what_was_loaded_meanwhile(ledger: Ledger, table: TableRow) -> None:
    """A file that another load finished after our look is not claimed."""
    load(ledger, table, "A", ["a"])
    late = begin(ledger, table, "B", ["a", "b"])
    assert late.loaded == ("a",)
    assert late.granted == ("b",)
    assert held(ledger) == {"b": "B"}


def test_claim_of_a_changed_file(ledger: Ledger, table: TableRow) -> None:
    """A record with another identity does not stand in the way, nor does the one we compared."""
    load(ledger, table, "A", ["a"])
    assert begin(ledger, table, "B", [identity("a", etag="new", size=11)]).granted == ("a",)
    abort(ledger, "B", "x", Manifest())
    assert begin(ledger, table, "C", ["a"], seen="A").granted == ("a",)


def test_load_ids_are_used_once(ledger: Ledger, table: TableRow) -> None:
    """Opening a load with a used id is refused and claims nothing."""
    begin(ledger, table, "A", ["a"])
    with pytest.raises(AlreadyExists):
        begin(ledger, table, "A", ["b"])
    assert held(ledger) == {"a": "A"}


def test_a_transaction_is_all_or_nothing(ledger: Ledger, table: TableRow) -> None:
    """A claim that fails at its last step leaves neither load nor claims."""
    start = LoadStart(load_id="L", owner=OWNER, lease_seconds=1, base_version=0)
    unknown = replace(table, number=table.number + 99)
    with pytest.raises(CalqueError):
        claim(ledger, unknown, replace(start, statement="x"), [Wanted(identity("a"))])
    assert held(ledger) == {}
    with ledger.read() as connection:
        assert connection.execute(select(loads)).all() == []


def test_no_claims_is_a_load_too(ledger: Ledger, table: TableRow) -> None:
    """A load may claim nothing (a truncate)."""
    start = LoadStart(load_id="T", owner=OWNER, lease_seconds=1, base_version=0)
    assert claim(ledger, table, start, ()).granted == ()
