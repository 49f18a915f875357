"""The one order of locks, and nothing else that waits.

SQLite gives a writing transaction the whole database, so there is nothing to do. On
PostgreSQL every transaction takes what it needs in this order:

1. **keys** (advisory, by the hash of bucket and key, rising): exclusively where the object
   at the key may appear, change or go, shared where it must only stay;
2. **buckets** (``FOR KEY SHARE``; only deleting a bucket takes one exclusively);
3. **families** (``FOR UPDATE`` on the object rows of the ancestors, by stream id): whoever
   adds, removes or promotes a copy holds the row of its ancestor. An object without
   copies is the ancestor of itself.

The rows of the children follow their ancestor's lock, so nobody else touches them.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from sqlalchemy import ARRAY, BigInteger, LargeBinary, any_, bindparam, func, select

from calque.store.metabase.database import Parameters, Transaction
from calque.store.metabase.faults import Disturbed
from calque.store.metabase.schema import objects, segment_copies
from calque.store.metabase.statement import POSTGRES, Statement
from calque.store.metabase.values import ObjectLocation

LOCK_KEYS = Statement(
    "lock keys",
    postgres=select(
        func.pg_advisory_xact_lock(func.unnest(bindparam("hashes", type_=ARRAY(BigInteger))))
    ),
)
LOCK_KEYS_SHARED = Statement(
    "lock keys shared",
    postgres=select(
        func.pg_advisory_xact_lock_shared(func.unnest(bindparam("hashes", type_=ARRAY(BigInteger))))
    ),
)
LOCK_FAMILIES = Statement(
    "lock families",
    postgres=select(objects.c.stream_id)
    .where(objects.c.stream_id == any_(bindparam("streams", type_=ARRAY(LargeBinary))))
    .order_by(objects.c.stream_id)
    .with_for_update(),
)
ANCESTOR_OF = Statement(
    "ancestor of a stream",
    select(segment_copies.c.ancestor_stream_id).where(
        segment_copies.c.stream_id == bindparam("stream_id")
    ),
)


def key_locks(
    transaction: Transaction,
    exclusive: Iterable[ObjectLocation] = (),
    shared: Iterable[ObjectLocation] = (),
) -> list[tuple[Statement, Parameters]]:
    """The statements that lock keys, to be the first of a transaction's first batch."""
    if transaction.dialect != POSTGRES:
        return []
    strong = {_hash(location) for location in exclusive}
    weak = {_hash(location) for location in shared} - strong
    # One statement a key: a single rising order over both strengths.
    return [
        (LOCK_KEYS if number in strong else LOCK_KEYS_SHARED, {"hashes": [number]})
        for number in sorted(strong | weak)
    ]


def lock_keys(transaction: Transaction, exclusive: Iterable[ObjectLocation]) -> None:
    """Lock many keys in one statement (batches of deletes)."""
    if transaction.dialect == POSTGRES:
        hashes = sorted({_hash(location) for location in exclusive})
        transaction.rows(LOCK_KEYS, {"hashes": hashes})


def lock_families(transaction: Transaction, streams: Iterable[tuple[bytes, bytes | None]]) -> None:
    """Lock the families of ``streams``, given as pairs of stream and ancestor (or none).

    The ancestors were read before the lock was held; when one has changed meanwhile the
    transaction is disturbed and starts again.
    """
    if transaction.dialect != POSTGRES:
        return
    pairs = list(streams)
    roots = sorted({ancestor or stream for stream, ancestor in pairs})
    if not roots:
        return
    if len(transaction.rows(LOCK_FAMILIES, {"streams": roots})) != len(roots):
        raise Disturbed("an ancestor went away while waiting for it")
    for stream, ancestor in pairs:
        # An original never becomes a copy, so only copies can have changed.
        if ancestor is not None and ancestor_of(transaction, stream) != ancestor:
            raise Disturbed("a copy was promoted while waiting for its ancestor")


def ancestor_of(transaction: Transaction, stream_id: bytes) -> bytes | None:
    """The stream that holds the pieces of ``stream_id``; ``None`` when it does itself."""
    found = transaction.row(ANCESTOR_OF, {"stream_id": stream_id})
    return bytes(found[0]) if found else None


def _hash(location: ObjectLocation) -> int:
    digest = blake2b(location.project_id, digest_size=8)
    digest.update(location.bucket.encode())
    digest.update(b"\0")
    digest.update(location.key)
    return int.from_bytes(digest.digest(), "big", signed=True)
