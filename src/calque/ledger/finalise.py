"""The end of a load that is in the table: its files are recorded, its claims go."""

from __future__ import annotations

from sqlalchemy import select

from calque.errors import Unexpected
from calque.ledger.database import Ledger
from calque.ledger.manifest import Manifest
from calque.ledger.prepare import read_manifest
from calque.ledger.record import close_load, record_sources
from calque.ledger.schema import loads


def finalise(
    ledger: Ledger, load_id: str, table_version: int, manifest: Manifest | None = None
) -> bool:
    """Record the files, release the claims, mark the load COMMITTED; False if that was done.

    All in one transaction. Works from the stored manifest, so that the owner and a recoverer do the
    very same; a caller that holds it may give it, and it is not read again.
    """
    with ledger.write() as connection:
        # Locked: owner and recoverer may come here at once, and only one writes the results.
        row = connection.execute(
            select(loads.c.table_number, loads.c.state)
            .where(loads.c.load_id == load_id)
            .with_for_update()
        ).first()
        if row is None or row.state == "COMMITTED":
            return False
        manifest = manifest or read_manifest(connection, load_id)
        if manifest is None or row.state != "PREPARED":
            raise Unexpected(
                f"load {load_id} is {row.state} in the ledger but committed in the table"
            )
        record_sources(connection, ledger, row.table_number, load_id, table_version, manifest)
        close_load(connection, ledger, load_id, "COMMITTED", manifest, table_version)
    return True
