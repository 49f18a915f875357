"""Purge: remove the sources of finished loads, from a queue that outlives a crash."""

from __future__ import annotations

from collections.abc import Iterator

from calque import faults
from calque.errors import CalqueError, ConditionNotMatch, NotFound
from calque.ledger import Ledger, TableRow
from calque.ledger.purge import Purge, pending_purges, purge_failed, purged
from calque.load.stage import Stage
from calque.operator import Operator

BATCH = 10_000
"""Files of the queue in memory at a time."""


def purge_sources(ledger: Ledger, table: TableRow, stage: Stage) -> tuple[int, list[str]]:
    """Remove what the queue names; how many were removed, and what could not be, with reasons.

    A file that was replaced since its load is no longer ours to remove: it leaves the queue. Files
    of other stages, which a killed load has left there, are reached without this stage's options.
    """
    removed, troubles = 0, []
    for one in _queued(ledger, table):
        faults.point("purge.before")
        try:
            removed += _remove(one, stage)
        except CalqueError as error:
            purge_failed(ledger, one, error.message)
            troubles.append(f"{one.identity.location} could not be removed: {error.message}")
            continue
        faults.point("purge.after")
        purged(ledger, [one])
    return removed, troubles


def _queued(ledger: Ledger, table: TableRow) -> Iterator[Purge]:
    """The whole queue, each file once; what failed before comes last."""
    seen: set[tuple[str, str]] = set()
    while True:
        found = pending_purges(ledger, table, BATCH)
        fresh = [one for one in found if (one.load_id, one.identity.location) not in seen]
        if not fresh:
            return
        seen.update((one.load_id, one.identity.location) for one in fresh)
        yield from fresh


def _remove(one: Purge, stage: Stage) -> bool:
    operator, path = _located(one.identity.location, stage)
    try:
        found = operator.stat(path)
        if found.pin != one.identity.pin or found.size != one.identity.size:
            return False
        guard = found.etag if operator.capability.delete_with_if_match else None
        operator.delete(path, if_match=guard)
    except (NotFound, ConditionNotMatch):
        return False
    return True


def _located(location: str, stage: Stage) -> tuple[Operator, str]:
    if location.startswith(stage.base):
        return stage.operator, location.removeprefix(stage.base)
    return Operator.locate(location)
