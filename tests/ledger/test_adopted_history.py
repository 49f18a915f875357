"""Loads that were taken in from a table, as its history shows them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from calque.ledger.history import LoadRow
from calque.ledger.schema import REBUILT


def test_how_long_it_took_is_not_made_up() -> None:
    """The table tells when a load began, and not when it ended."""
    begun = datetime(2026, 1, 1, tzinfo=UTC)
    row = LoadRow(
        load_id="x", database="d", table="t", state="COMMITTED", label=None, files=1, rows=1,
        errors=0, bytes=1, started_at=begun, finished_at=begun + timedelta(seconds=3),
        table_version=1, who=None, engine=None, statement=None, message=None, last=True,
        table_number=1,
    )  # fmt: skip
    assert row.seconds == 3
    assert replace(row, message=REBUILT).seconds is None
    assert replace(row, finished_at=None).seconds is None
