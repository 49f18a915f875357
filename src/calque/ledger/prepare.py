"""The last step before the table's commit: what is to be committed is kept for whoever does it."""

from __future__ import annotations

from sqlalchemy import Connection, select, update

from calque.errors import Aborted
from calque.ledger.database import Ledger
from calque.ledger.manifest import Manifest
from calque.ledger.record import keep_errors
from calque.ledger.schema import loads


def prepare(ledger: Ledger, load_id: str, owner: str, manifest: Manifest) -> None:
    """WRITING → PREPARED with the manifest. Raises Aborted when the load was taken from us."""
    with ledger.write() as connection:
        # The owner and the state are part of the update itself: a recoverer that took the load
        # over a moment ago must not find it prepared behind its back.
        prepared = connection.execute(
            update(loads)
            .where(loads.c.load_id == load_id, loads.c.owner == owner, loads.c.state == "WRITING")
            .values(state="PREPARED", manifest=manifest.encode())
        )
        if prepared.rowcount == 1:
            keep_errors(connection, load_id, manifest)
    if prepared.rowcount != 1:
        raise Aborted(
            f"load {load_id} was taken over by another loader while it was writing",
            hint="Nothing was loaded by this run; run the statement again.",
            retryable=True,
        )


def manifest_of(ledger: Ledger, load_id: str) -> Manifest | None:
    """The stored manifest of a load that was prepared."""
    with ledger.read() as connection:
        return read_manifest(connection, load_id)


def read_manifest(connection: Connection, load_id: str) -> Manifest | None:
    """The same inside the caller's transaction."""
    data = connection.execute(select(loads.c.manifest).where(loads.c.load_id == load_id)).scalar()
    return Manifest.decode(data) if data else None
