"""Loads that were run with another ledger, or before this one was lost, taken in from the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Connection, select

from calque.ledger.database import Ledger
from calque.ledger.files import NAMES_AT_ONCE
from calque.ledger.manifest import Manifest
from calque.ledger.record import close_load, record_sources
from calque.ledger.schema import REBUILT, files, loads
from calque.ledger.tables import TableRow, lock_table, upsert

ADOPTED = "rebuild"
"""The owner of a load that was taken in from the table: it was run with another ledger."""


def adopt(
    ledger: Ledger, table: TableRow, load_id: str, table_version: int, manifest: Manifest
) -> bool:
    """Take a committed load that the ledger lost back in, as its sidecar tells it.

    An id that is taken by a load of another table (two ledgers may have given the same label) gets
    this table's number behind it. False if the load is known; of a table that was restored it may
    have lost its records, which it gets again.
    """
    with ledger.write() as connection:
        # The table first, as everybody does who records files: so nobody deadlocks with us.
        lock_table(connection, table)
        for name in (load_id, f"{load_id}~t{table.number}"):
            if _insert_adopted(connection, ledger, table, name, table_version, manifest):
                record_sources(connection, ledger, table.number, name, table_version, manifest)
                close_load(connection, ledger, name, "COMMITTED", manifest, table_version, REBUILT)
                return True
            query = select(loads.c.table_number, loads.c.state).where(loads.c.load_id == name)
            holder = connection.execute(query).first()
            if holder is not None and holder.table_number == table.number:
                if table.was_restored and holder.state == "COMMITTED":
                    _restore_records(connection, ledger, table, name, table_version, manifest)
                return False
    return False


def find_known_loads(ledger: Ledger, load_ids: Sequence[str]) -> dict[str, tuple[int, str]]:
    """Table number and owner of those of these loads that the ledger knows."""
    found: dict[str, tuple[int, str]] = {}
    with ledger.read() as connection:
        for start in range(0, len(load_ids), NAMES_AT_ONCE):
            query = select(loads.c.load_id, loads.c.table_number, loads.c.owner).where(
                loads.c.load_id.in_(load_ids[start : start + NAMES_AT_ONCE])
            )
            found.update((row[0], (row[1], row[2])) for row in connection.execute(query))
    return found


def _restore_records(
    connection: Connection,
    ledger: Ledger,
    table: TableRow,
    load_id: str,
    table_version: int,
    manifest: Manifest,
) -> None:
    """Record a known load's sources again where no record as new is there; or its truncation."""
    places = [one.identity.location for one in manifest.sources]
    held: set[str] = set()
    for start in range(0, len(places), NAMES_AT_ONCE):
        query = select(files.c.location).where(
            files.c.table_number == table.number,
            files.c.location.in_(places[start : start + NAMES_AT_ONCE]),
            files.c.table_version >= table_version,
        )
        held.update(connection.execute(query).scalars())
    missing = tuple(one for one in manifest.sources if one.identity.location not in held)
    found = replace(manifest, sources=missing, moved={}, purge=False)
    record_sources(connection, ledger, table.number, load_id, table_version, found)


def _insert_adopted(
    connection: Connection,
    ledger: Ledger,
    table: TableRow,
    load_id: str,
    table_version: int,
    manifest: Manifest,
) -> bool:
    """Make the load's row; False if there is one of that id, made by whomever."""
    now = ledger.now()
    made = connection.execute(
        upsert(connection, loads)
        .values(
            load_id=load_id,
            table_number=table.number,
            label=manifest.label,
            last=manifest.last,
            state="PREPARED",
            owner=ADOPTED,
            lease_until=now,
            started_at=min((one.verified_at for one in manifest.sources), default=now),
            base_version=table_version,
            purge=manifest.purge,
        )
        # Another that rebuilds at the same time: wait for it, and leave the load to it.
        .on_conflict_do_nothing()
        .returning(loads.c.load_id)
    )
    return made.first() is not None
