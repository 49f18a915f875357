"""What time takes away: expired objects, abandoned uploads and copies, deletions that waited."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from calque.store.embedded import EmbeddedStore
from calque.store.metabase.delete_batch import BatchResult, delete_expired, delete_zombies
from calque.store.metabase.operations import sweep_operations
from calque.store.nodes.expire import collect_expired


@dataclass(frozen=True, slots=True)
class Swept:
    """What one sweep removed."""

    expired_objects: int
    abandoned_uploads: int
    abandoned_operations: int
    expired_pieces: int
    waited_pieces: int


def sweep_store(store: EmbeddedStore) -> Swept:
    """Remove what is over. Safe at any time, by any number of processes, and to be repeated.

    Never touches a committed object that has not expired. A promoted copy keeps its bytes.
    """
    database = store.endpoint.database
    now = datetime.fromtimestamp(database.clock() / 1_000_000, UTC)
    idle = int(store.endpoint.settings.zombie_after_s * 1_000_000)
    return Swept(
        expired_objects=_delete(store, delete_expired(database)),
        abandoned_uploads=_delete(store, delete_zombies(database, idle_us=idle)),
        abandoned_operations=sum(sweep_operations(database)),
        expired_pieces=sum(collect_expired(node, now) for node in store.nodes.direct()),
        waited_pieces=store.deletions.retry(),
    )


def _delete(store: EmbeddedStore, batches: Iterable[BatchResult]) -> int:
    deleted = 0
    for batch in batches:
        store.free(batch.freed)
        deleted += batch.deleted
    return deleted
