"""The end of a load that is not in the table, nor ever will be."""

from __future__ import annotations

from sqlalchemy import select

from calque.ledger.database import Ledger
from calque.ledger.manifest import Manifest
from calque.ledger.record import close_load, keep_errors
from calque.ledger.schema import OPEN, loads


def abort(ledger: Ledger, load_id: str, message: str, manifest: Manifest) -> bool:
    """Load ABORTED, its claims released, its results and errors kept; False if it was over."""
    with ledger.write() as connection:
        state = connection.execute(
            select(loads.c.state).where(loads.c.load_id == load_id).with_for_update()
        ).scalar()
        if state not in OPEN:
            return False
        close_load(connection, ledger, load_id, "ABORTED", manifest, None, message)
        keep_errors(connection, load_id, manifest)
    return True
