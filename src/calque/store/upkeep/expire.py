"""What time takes away: expired objects, abandoned uploads and copies, deletions that waited."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from calque import faults
from calque.errors import CalqueError
from calque.store.embedded import EmbeddedStore
from calque.store.metabase.copies.operations import sweep_operations
from calque.store.metabase.model.records import moment
from calque.store.metabase.objects.delete_batch import delete_expired, delete_zombies
from calque.store.metabase.upkeep.count_removable import count_removable
from calque.store.nodes.expire import count_expired_pieces, delete_expired_pieces
from calque.store.nodes.node import Node
from calque.store.nodes.sweeps import sweep_node
from calque.store.satellite.freed_pieces import never_over

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What one sweep removed."""

    expired_objects: int
    abandoned_uploads: int
    abandoned_operations: int
    expired_pieces: int
    deleted_pieces: int


def sweep_store(store: EmbeddedStore, over: Callable[[], bool] = never_over) -> SweepReport:
    """Remove what is over. Safe at any time, by any number of processes, and to be repeated.

    Never touches a committed object that has not expired. A promoted copy keeps its bytes.
    A node that does not answer is left for the next time, and so is whatever remains when ``over``
    says that there is no more time. What fails is logged, and the rest goes on.
    """
    database = store.endpoint.database
    now = moment(database.clock())
    idle = int(store.endpoint.settings.zombie_after_s * 1_000_000)
    return SweepReport(
        expired_objects=_count(
            "expired objects", over, (each.deleted for each in delete_expired(database))
        ),
        abandoned_uploads=_count(
            "abandoned uploads",
            over,
            (each.deleted for each in delete_zombies(database, idle_us=idle)),
        ),
        abandoned_operations=_count("abandoned operations", over, sweep_operations(database)),
        expired_pieces=_count("expired pieces", over, _delete_expired_pieces(store, now)),
        # What the first two let go is in the same queue as what waited.
        deleted_pieces=_count("freed pieces", over, _delete_freed_pieces(store, over)),
    )


def plan_sweep(store: EmbeddedStore) -> SweepReport:
    """What a sweep would remove now; nothing is changed.

    Pieces of what would expire are not among those that wait yet.
    """
    database = store.endpoint.database
    now = moment(database.clock())
    over = count_removable(
        database, idle_us=int(store.endpoint.settings.zombie_after_s * 1_000_000)
    )
    waiting = store.endpoint.list_waiting_pieces()
    return SweepReport(
        expired_objects=over.expired_objects,
        abandoned_uploads=over.abandoned_uploads,
        abandoned_operations=over.abandoned_operations,
        expired_pieces=sum(_count_expired_on(node, now) for node in store.own_nodes()),
        deleted_pieces=sum(len(each.pieces) for each in waiting),
    )


def _count_expired_on(node: Node, now: datetime) -> int:
    try:
        return sweep_node(node, partial(count_expired_pieces, now=now))
    except CalqueError as error:
        _log.warning("node %s does not tell what has expired: %s", node.name, error)
        return 0


def _count(what: str, over: Callable[[], bool], steps: Iterable[int]) -> int:
    """The sum of the steps, as far as they come: a failure here must not stop what follows."""
    done = 0
    try:
        for step in steps:
            done += step
            faults.point("expire.step")
            if over():
                break
    except Exception:
        _log.exception("the sweep of %s failed; it goes on with the rest", what)
    return done


def _delete_expired_pieces(store: EmbeddedStore, now: datetime) -> Iterator[int]:
    for node in store.own_nodes():
        if not store.endpoint.are_pieces_on_hold:
            yield _delete_expired_on(node, now)


def _delete_expired_on(node: Node, now: datetime) -> int:
    try:
        return sweep_node(node, partial(delete_expired_pieces, now=now))
    except Exception as error:
        _log.warning("the expired pieces of node %s wait: %s", node.name, error)
        return 0


def _delete_freed_pieces(store: EmbeddedStore, over: Callable[[], bool]) -> Iterator[int]:
    yield store.endpoint.free_waiting(over=over)
