"""Purge: remove or move the sources of finished loads, from a queue that outlives a crash."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from calque import faults
from calque.config import Settings
from calque.errors import CalqueError, ConditionNotMatch, NotFound
from calque.ledger import Ledger, TableRow
from calque.ledger.purge import Purge, note_failures, pending_purges, remove_from_queue
from calque.loader.after.archive import Archive, delete_pinned
from calque.loader.plan.stage import Stage
from calque.loader.run.operators import Operators
from calque.operator import Operator

AT_ONCE = 8

Locate = Callable[[str], tuple[Operator, str]]
"""A location as an operator and a path in it."""


@dataclass(slots=True)
class Purged:
    """How many sources went, and what could not go, with reasons."""

    removed: int = 0
    archived: int = 0
    troubles: list[str] = field(default_factory=list)


def purge_sources(ledger: Ledger, table: TableRow, stage: Stage, settings: Settings) -> Purged:
    """Work off the queue of a table.

    A file that was replaced since its load is no longer ours to touch: it leaves the queue, and so
    does one that another load has brought since. What fails stays queued for the next load. Killed
    between the removal of some files and the note of it, the next run finds them gone. Files of
    other stages, which a killed load has left there, are reached without this stage's options.
    """
    done = Purged()
    others = Operators()

    def locate(location: str) -> tuple[Operator, str]:
        if location.startswith(stage.base):
            return stage.operator, location.removeprefix(stage.base)
        return others.at(location)

    try:
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="calque-purge") as pool:
            for some in pending_purges(ledger, table):
                faults.point("purge.before")
                for one in some:  # opened here, so that threads do not open a service twice
                    with suppress(CalqueError):
                        locate(one.identity.location)
                clear = partial(_clear, locate, settings)
                outcomes = list(zip(some, pool.map(clear, some), strict=True))
                faults.point("purge.after")
                failed = [(one, told) for one, told in outcomes if isinstance(told, str)]
                remove_from_queue(
                    ledger, [one for one, told in outcomes if not isinstance(told, str)]
                )
                note_failures(ledger, failed)
                gone = [one for one, told in outcomes if told is True]
                done.archived += sum(one.archive is not None for one in gone)
                done.removed += sum(one.archive is None for one in gone)
                done.troubles += [_trouble(one, why) for one, why in failed]
    finally:
        others.close()
    return done


def _clear(locate: Locate, settings: Settings, one: Purge) -> bool | str:
    """Whether the file was there and still ours; or why it could not go."""
    if one.is_superseded:
        return False
    try:
        operator, path = locate(one.identity.location)
        found = operator.stat(path)
        if found.pin != one.identity.pin or found.size != one.identity.size:
            return False
        if one.archive is None:
            delete_pinned(operator, found)
        else:
            name = one.name or path.rpartition("/")[2]
            Archive.at(one.archive, settings).take(operator, found, name, one.load_id)
    except (NotFound, ConditionNotMatch):
        return False
    except CalqueError as error:
        return error.message
    return True


def _trouble(one: Purge, why: str) -> str:
    what = "removed" if one.archive is None else f"moved to {one.archive}"
    return f"{one.identity.location} could not be {what}: {why}"
