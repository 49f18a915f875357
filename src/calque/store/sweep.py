"""What time takes away: expired objects, abandoned uploads and copies, deletions that waited."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from calque.errors import CalqueError
from calque.store.embedded import EmbeddedStore
from calque.store.metabase.delete_batch import BatchResult, delete_expired, delete_zombies
from calque.store.metabase.operations import sweep_operations
from calque.store.metainfo.endpoint.freeing import never
from calque.store.nodes.expire import collect_expired
from calque.store.nodes.node import Node

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Swept:
    """What one sweep removed."""

    expired_objects: int
    abandoned_uploads: int
    abandoned_operations: int
    expired_pieces: int
    deleted_pieces: int


def sweep_store(store: EmbeddedStore, over: Callable[[], bool] = never) -> Swept:
    """Remove what is over. Safe at any time, by any number of processes, and to be repeated.

    Never touches a committed object that has not expired. A promoted copy keeps its bytes.
    A node that does not answer is left for the next time, and so is whatever remains when ``over``
    says that there is no more time.
    """
    database = store.endpoint.database
    now = datetime.fromtimestamp(database.clock() / 1_000_000, UTC)
    idle = int(store.endpoint.settings.zombie_after_s * 1_000_000)
    return Swept(
        expired_objects=_count(delete_expired(database), over),
        abandoned_uploads=_count(delete_zombies(database, idle_us=idle), over),
        abandoned_operations=sum(sweep_operations(database)),
        expired_pieces=sum(
            _expired_pieces(node, now) for node in store.nodes.direct() if not over()
        ),
        # What the first two let go is in the same queue as what waited.
        deleted_pieces=store.endpoint.free_waiting(over=over),
    )


def _count(batches: Iterable[BatchResult], over: Callable[[], bool]) -> int:
    deleted = 0
    for batch in batches:
        deleted += batch.deleted
        if over():
            break
    return deleted


def _expired_pieces(node: Node, now: datetime) -> int:
    try:
        return collect_expired(node, now)
    except CalqueError as error:
        _log.warning("the expired pieces of node %s wait: %s", node.name, error)
        return 0
