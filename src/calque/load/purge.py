"""Purge: remove the sources of finished loads, from a queue that outlives a crash."""

from __future__ import annotations

from calque import faults
from calque.errors import CalqueError, ConditionNotMatch, NotFound
from calque.ledger import Ledger, TableRow
from calque.ledger.purge import Purge, pending_purges, purge_failed, purged
from calque.operator import Operator


def purge_sources(ledger: Ledger, table: TableRow, **options: object) -> tuple[int, list[str]]:
    """Remove what the queue names; how many were removed, and what could not be, with reasons.

    A file that was replaced since its load is no longer ours to remove: it leaves the queue.
    """
    removed, troubles = 0, []
    for one in pending_purges(ledger, table):
        faults.point("purge.before")
        try:
            removed += _remove(one, options)
        except CalqueError as error:
            purge_failed(ledger, one, error.message)
            troubles.append(f"{one.identity.location} could not be removed: {error.message}")
            continue
        faults.point("purge.after")
        purged(ledger, [one])
    return removed, troubles


def _remove(one: Purge, options: dict[str, object]) -> bool:
    operator, path = Operator.locate(one.identity.location, **options)  # type: ignore[arg-type]
    try:
        found = operator.stat(path)
        if found.pin != one.identity.pin or found.size != one.identity.size:
            return False
        guard = found.etag if operator.capability.delete_with_if_match else None
        operator.delete(path, if_match=guard)
    except (NotFound, ConditionNotMatch):
        return False
    return True
