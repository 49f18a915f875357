"""The tables a ledger has seen loads of, and the ledger that settings name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from calque.config import LedgerSettings, Secret, Settings
from calque.ledger import Ledger, TableRow
from calque.ledger.configured import existing_ledger_of, ledger_of
from calque.ledger.loaded_tables import list_loaded_tables
from calque.ledger.tables import register_table
from tests.ledger.conftest import KEY
from tests.ledger.filling import begin, load


def test_sums_of_committed_loads(ledger: Ledger, table: TableRow) -> None:
    """Committed loads count, open ones do not; a table made anew takes the place of the old."""
    load(ledger, table, "L1", ["s3://b/a", "s3://b/b"])
    load(ledger, table, "L2", ["s3://b/c"])
    begin(ledger, table, "open", ["s3://b/d"])
    (found,) = list_loaded_tables(ledger)
    assert (found.address, found.loads, found.rows) == ((KEY.catalog, KEY.address), 2, 9)
    assert found.last_load_at is not None
    register_table(ledger, replace(KEY, table_id="id-2"))
    (found,) = list_loaded_tables(ledger)
    assert (found.loads, found.rows, found.last_load_at) == (0, 0, None)


def test_looking_makes_no_ledger(tmp_path: Path) -> None:
    """A file that is not there stays so; one that is there is opened."""
    settings = Settings(ledger=LedgerSettings(url=Secret(f"sqlite:///{tmp_path}/x/ledger.db")))
    assert existing_ledger_of(settings) is None
    assert list(tmp_path.iterdir()) == []
    ledger_of(settings).close()
    opened = existing_ledger_of(settings)
    assert opened is not None
    opened.close()
