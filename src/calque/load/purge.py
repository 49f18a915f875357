"""Purge: remove the sources of finished loads, from a queue that outlives a crash."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

from calque import faults
from calque.errors import CalqueError, ConditionNotMatch, NotFound
from calque.ledger import Ledger, TableRow
from calque.ledger.purge import Purge, pending_purges, purge_failed, purged
from calque.load.task import Operators

AT_ONCE = 8


def purge_sources(ledger: Ledger, table: TableRow, **options: object) -> tuple[int, list[str]]:
    """Remove what the queue names; how many were removed, and what could not be, with reasons.

    A file that was replaced since its load is no longer ours to remove: it leaves the queue.
    Killed between the removal of some files and the note of it, the next run finds them gone.
    """
    removed, troubles = 0, []
    operators = Operators(options)
    try:
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="calque-purge") as pool:
            for some in pending_purges(ledger, table):
                faults.point("purge.before")
                for one in some:  # opened here, so that threads do not open a service twice
                    with suppress(CalqueError):
                        operators.at(one.identity.location)
                outcomes = list(zip(some, pool.map(partial(_remove, operators), some), strict=True))
                faults.point("purge.after")
                failed = [(one, told) for one, told in outcomes if isinstance(told, str)]
                purged(ledger, [one for one, told in outcomes if not isinstance(told, str)])
                purge_failed(ledger, failed)
                removed += sum(told is True for _, told in outcomes)
                for one, told in failed:
                    troubles.append(f"{one.identity.location} could not be removed: {told}")
    finally:
        operators.close()
    return removed, troubles


def _remove(operators: Operators, one: Purge) -> bool | str:
    """Whether the file was there to be removed; or why it could not be."""
    try:
        operator, path = operators.at(one.identity.location)
        found = operator.stat(path)
        if found.pin != one.identity.pin or found.size != one.identity.size:
            return False
        guard = found.etag if operator.capability.delete_with_if_match else None
        operator.delete(path, if_match=guard)
    except (NotFound, ConditionNotMatch):
        return False
    except CalqueError as error:
        return error.message
    return True
