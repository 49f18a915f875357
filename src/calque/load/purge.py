"""Purge: remove or move the sources of finished loads, from a queue that outlives a crash."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from calque import faults
from calque.config import Settings
from calque.errors import CalqueError, ConditionNotMatch, NotFound
from calque.ledger import Ledger, TableRow
from calque.ledger.purge import Purge, pending_purges, purge_failed, purged
from calque.load.archive import Archive, delete_pinned
from calque.load.stage import Stage
from calque.operator import Operator


@dataclass(slots=True)
class Purged:
    """How many sources went, and what could not go, with reasons."""

    removed: int = 0
    archived: int = 0
    troubles: list[str] = field(default_factory=list)


def purge_sources(ledger: Ledger, table: TableRow, stage: Stage, settings: Settings) -> Purged:
    """Work off the queue of a table.

    A file that was replaced since its load is no longer ours to touch: it leaves the queue. What
    fails stays queued for the next load.
    """
    done = Purged()
    failed: set[tuple[str, str]] = set()
    while page := [one for one in pending_purges(ledger, table) if _key(one) not in failed]:
        for one in page:
            faults.point("purge.before")
            try:
                _clear(one, stage.options, settings, done)
            except CalqueError as error:
                failed.add(_key(one))
                purge_failed(ledger, one, error.message)
                what = "removed" if one.archive is None else f"moved to {one.archive}"
                done.troubles.append(
                    f"{one.identity.location} could not be {what}: {error.message}"
                )
                continue
            faults.point("purge.after")
            purged(ledger, [one])
    return done


def _key(one: Purge) -> tuple[str, str]:
    return one.load_id, one.identity.location


def _clear(one: Purge, options: dict[str, object], settings: Settings, done: Purged) -> None:
    operator, path = Operator.locate(one.identity.location, **cast(Any, options))
    try:
        found = operator.stat(path)
        if found.pin != one.identity.pin or found.size != one.identity.size:
            return
        if one.archive is None:
            delete_pinned(operator, found)
            done.removed += 1
            return
        name = one.name or path.rpartition("/")[2]
        Archive.at(one.archive, settings).take(operator, found, name, one.load_id)
        done.archived += 1
    except (NotFound, ConditionNotMatch):
        return
