"""Tables as the ledger names them, and restores of them."""

from __future__ import annotations

from dataclasses import replace

from calque.ledger import Ledger, TableRow, open_ledger
from calque.ledger.files import scan
from calque.ledger.tables import find_table, register_table, void_records
from tests.ledger.conftest import KEY
from tests.ledger.filling import begin, load


def test_key_is_tenant_database_table_and_file(url: str) -> None:
    """Tenants, databases, tables and re-made tables never see each other's records."""
    keys = [
        KEY,
        replace(KEY, catalog="iceberg:/lake"),
        replace(KEY, address="file:///lake/u"),
        replace(KEY, table_id="id-2"),
    ]
    for tenant in ("a", "b"):
        with open_ledger(url, tenant=tenant) as ledger:
            for number, key in enumerate(keys):
                row = register_table(ledger, key)
                assert row.is_unchecked
                load(ledger, row, f"{tenant}{number}", [f"s3://b/{tenant}{number}"])
                assert [one.location for one in scan(ledger, row)] == [f"s3://b/{tenant}{number}"]
            assert register_table(ledger, KEY).number == find_table(ledger, KEY).number


def test_restore_voids_records(ledger: Ledger, table: TableRow) -> None:
    """Records of versions that a restore took back are dropped, others stay."""
    for number in (1, 2, 3):
        load(ledger, table, f"L{number}", [f"f{number}"], version=number)
    assert void_records(ledger, table, [(1, 2)], 5) == 1
    assert [one.location for one in scan(ledger, table)] == ["f1", "f3"]
    assert register_table(ledger, KEY).checked_version == 5


def test_restore_is_looked_at_again_while_a_load_is_open(ledger: Ledger, table: TableRow) -> None:
    """An open load may bring records of restored versions later: the version stays unchecked."""
    begin(ledger, table, "open", ["x"])
    void_records(ledger, table, [], 5)
    assert register_table(ledger, KEY).checked_version == -1
