"""The ledger's schema, step by step; the steps lie in ``migrations/``."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from calque.databases.schema_steps import SchemaSteps
from calque.errors import ConfigInvalid
from calque.ledger.schema import metadata

NUMBERED = "calque_ledger_version"
LAST_NUMBER = 4
"""Ledgers had numbers of their own before Alembic noted the steps."""


def _find_unnoted(connection: Connection) -> str | None:
    """Where to go on with a ledger that has a number, and no note of Alembic's.

    The number says too little: two releases called different steps the second, and the fourth
    grew. But the steps up to the last that had a number look at what is there before they add to
    it, so all after the first are gone through again.
    """
    if not inspect(connection).has_table(NUMBERED):
        return None
    number = connection.execute(text(f"SELECT version FROM {NUMBERED}")).scalar()
    if number is not None and number > LAST_NUMBER:
        raise ConfigInvalid(
            f"the ledger has version {number}, but no note of its schema ({STEPS.note}) is left",
            hint="Use a backup, or the newer calque that wrote it. Without either, remove the "
            "ledger: it is made again from what its tables tell.",
        )
    return "0001" if number else None


def _add_rest(connection: Connection) -> None:
    """The number that tells an older calque that it knows too little, and a name of old."""
    connection.execute(text(f"CREATE TABLE IF NOT EXISTS {NUMBERED} (version INTEGER NOT NULL)"))
    connection.execute(text(f"DELETE FROM {NUMBERED}"))
    connection.execute(text(f"INSERT INTO {NUMBERED} VALUES ({LAST_NUMBER + 1})"))
    if connection.dialect.name == "postgresql":
        # It has this name in ledgers that took the steps; one that alters it must find it in all.
        connection.execute(
            text(
                "ALTER TABLE calque_tables RENAME CONSTRAINT "
                "calque_tables_tenant_catalog_address_table_id_key TO "
                "calque_tables_tenant_database_name_table_id_key"
            )
        )


STEPS = SchemaSteps(
    what="the ledger",
    folder=Path(__file__).parent / "migrations" / "versions",
    note="calque_ledger_revision",
    lock=7112405,
    refusal=ConfigInvalid,
    find_unnoted=_find_unnoted,
    tables=metadata,
    add_rest=_add_rest,
)
