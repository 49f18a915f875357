"""The one order of locks, and nothing else that waits.

SQLite gives a writing transaction the whole database, so there is nothing to do. On
PostgreSQL every transaction takes what it needs in this order:

0. **gates** of buckets (advisory, by the hash of the bucket, rising): shared by whoever locks a
   key in it, exclusively where all keys below a prefix change their names at once;
1. **keys** (advisory, by the hash of bucket and key, rising): exclusively where the object
   at the key may appear, change or go, shared where it must only stay;
2. **buckets** (``FOR KEY SHARE``; only deleting a bucket takes one exclusively);
3. **families** (``FOR UPDATE`` on the object rows of the ancestors, by stream id): whoever
   adds, removes or promotes a copy holds the row of its ancestor, and of the sources of its
   slices. An object without copies is the ancestor of itself. All rows that a transaction needs
   are locked by one statement: a second one could come to a lower id, and wait for somebody who
   waits for the first;
4. **sliced segments** (``FOR UPDATE``, by stream id and position): the source of a slice may
   have lost its object, and then this is where those who share it meet.

The rows of the children follow their ancestor's lock, so nobody else touches them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    LargeBinary,
    any_,
    bindparam,
    func,
    select,
    tuple_,
    union_all,
)

from calque.store.metabase.engine.errors import Disturbed
from calque.store.metabase.engine.statement import POSTGRES, Statement
from calque.store.metabase.engine.transaction import Parameters, Transaction
from calque.store.metabase.model.records import ObjectLocation
from calque.store.metabase.model.schema import (
    objects,
    segment_copies,
    segment_slices,
    segments,
)

_gates = func.unnest(bindparam("gates", type_=ARRAY(BigInteger)))
PASS_GATES = Statement(
    "pass the gates of buckets", postgres=select(func.pg_advisory_xact_lock_shared(_gates))
)
CLOSE_GATES = Statement(
    "close the gates of buckets", postgres=select(func.pg_advisory_xact_lock(_gates))
)
LOCK_KEYS = Statement(
    "lock keys",
    postgres=select(
        func.pg_advisory_xact_lock(func.unnest(bindparam("hashes", type_=ARRAY(BigInteger))))
    ),
)
strong_lock = func.pg_advisory_xact_lock(bindparam("strong", type_=BigInteger))
weak_lock = func.pg_advisory_xact_lock_shared(bindparam("weak", type_=BigInteger))
LOCK_STRONG_THEN_WEAK = Statement(
    "lock a key, then one shared", postgres=select(strong_lock, weak_lock)
)
LOCK_WEAK_THEN_STRONG = Statement(
    "lock a key shared, then one", postgres=select(weak_lock, strong_lock)
)
_given = bindparam("streams", type_=ARRAY(LargeBinary))
_slices = segment_slices.c
LOCK_FAMILIES = Statement(
    # Also those that lend pieces to slices of these streams.
    "lock families",
    postgres=select(objects.c.stream_id)
    .where(
        objects.c.stream_id.in_(
            union_all(
                select(func.unnest(bindparam("roots", type_=ARRAY(LargeBinary)))),
                select(_slices.source_stream_id).where(_slices.stream_id == any_(_given)),
            )
        )
    )
    .order_by(objects.c.stream_id)
    .with_for_update(),
)
LOCK_SLICED = Statement(
    # A source may have no object any more: then its segments are all there is to lock.
    "lock the segments that slices are cut from",
    postgres=select(segments.c.stream_id, segments.c.position)
    .where(
        tuple_(segments.c.stream_id, segments.c.position).in_(
            select(_slices.source_stream_id, _slices.source_position).where(
                _slices.stream_id == any_(_given)
            )
        )
    )
    .order_by(segments.c.stream_id, segments.c.position)
    .with_for_update(),
)
LENDERS = Statement(
    "streams that slices of many streams are cut from",
    postgres=select(_slices.source_stream_id).distinct().where(_slices.stream_id == any_(_given)),
)
HAS_OBJECT = Statement(
    "whether a stream has an object",
    select(objects.c.stream_id).where(objects.c.stream_id == bindparam("stream_id")),
)
ANCESTOR_OF = Statement(
    "ancestor of a stream",
    select(segment_copies.c.ancestor_stream_id).where(
        segment_copies.c.stream_id == bindparam("stream_id")
    ),
)


def key_locks(
    transaction: Transaction, exclusive: Iterable[ObjectLocation]
) -> list[tuple[Statement, Parameters]]:
    """The statements that lock keys, to be the first of a transaction's first batch."""
    if transaction.dialect != POSTGRES:
        return []
    places = list(exclusive)
    return [
        (PASS_GATES, {"gates": gates_of(places)}),
        (LOCK_KEYS, {"hashes": sorted({key_hash(location) for location in places})}),
    ]


def close_gates(transaction: Transaction, buckets: Iterable[tuple[bytes, str]]) -> None:
    """Have nobody lock a key in these buckets (project and name) until the commit."""
    if transaction.dialect == POSTGRES:
        gates = sorted({gate_hash(project, name) for project, name in buckets})
        transaction.rows(CLOSE_GATES, {"gates": gates})


def gates_of(locations: Iterable[ObjectLocation]) -> list[int]:
    """The gates of the buckets of ``locations``, in the order in which they are taken."""
    return sorted({gate_hash(each.project_id, each.bucket) for each in locations})


def copy_locks(
    transaction: Transaction, source: ObjectLocation, target: ObjectLocation
) -> list[tuple[Statement, Parameters]]:
    """The statements that lock a copy's keys: the target, and the source only shared."""
    if transaction.dialect != POSTGRES:
        return []
    gates = (PASS_GATES, {"gates": gates_of([source, target])})
    weak, strong = key_hash(source), key_hash(target)
    # Of one key, or of two with the same hash, the exclusive lock is enough. Taking the shared
    # one first would have two such copies wait for each other.
    if weak == strong:
        return [gates, (LOCK_KEYS, {"hashes": [strong]})]
    order = LOCK_STRONG_THEN_WEAK if strong < weak else LOCK_WEAK_THEN_STRONG
    return [gates, (order, {"strong": strong, "weak": weak})]


def lock_keys(transaction: Transaction, exclusive: Iterable[ObjectLocation]) -> None:
    """Lock many keys in one statement (batches of deletes)."""
    transaction.batch(key_locks(transaction, exclusive))


def lock_families(
    transaction: Transaction,
    streams: Iterable[tuple[bytes, bytes | None]],
    then: Sequence[tuple[Statement, Parameters]] = (),
    *,
    also: Sequence[bytes] = (),
) -> list[list[Any]]:
    """Lock the families of ``streams``, given as pairs of stream and ancestor (or none).

    The ancestors were read before the lock was held; when one has changed meanwhile the
    transaction is disturbed and starts again. ``then`` is executed under the locks, in
    the same trip; its rows are returned. ``also`` are rows to lock among the others, where
    they are there.
    """
    pairs = list(streams)
    if transaction.dialect != POSTGRES or not pairs:
        return transaction.batch(then) if then else []
    # By stream id, as the statement does: two transactions that need the same two families
    # take them in the same order and cannot wait for each other.
    roots = sorted({ancestor or stream for stream, ancestor in pairs})
    # An original never becomes a copy, so only copies can have another ancestor by now.
    copies = [(stream, ancestor) for stream, ancestor in pairs if ancestor is not None]
    given = {"streams": [stream for stream, _ in pairs], "roots": sorted({*roots, *also})}
    locked, _, lenders, *answers = transaction.batch(
        [
            (LOCK_FAMILIES, given),
            (LOCK_SLICED, given),
            (LENDERS, given),
            *((ANCESTOR_OF, {"stream_id": stream}) for stream, _ in copies),
            *then,
        ]
    )
    held = {row[0] for row in locked}
    if not held.issuperset(roots):
        raise Disturbed("an ancestor went away while waiting for it")
    for (lender,) in lenders:
        if lender not in held and transaction.rows(HAS_OBJECT, {"stream_id": lender}):
            raise Disturbed("slices were given another source while waiting for the first")
    for (_, ancestor), rows in zip(copies, answers, strict=False):
        if not rows or rows[0][0] != ancestor:
            raise Disturbed("a copy was promoted while waiting for its ancestor")
    return answers[len(copies) :]


def ancestor_of(transaction: Transaction, stream_id: bytes) -> bytes | None:
    """The stream that holds the pieces of ``stream_id``; ``None`` when it does itself."""
    found = transaction.row(ANCESTOR_OF, {"stream_id": stream_id})
    return bytes(found[0]) if found else None


def gate_hash(project_id: bytes, bucket: str) -> int:
    """The number of a bucket's gate."""
    digest = blake2b(project_id, digest_size=8, person=b"bucket gate")
    digest.update(bucket.encode())
    return int.from_bytes(digest.digest(), "big", signed=True)


def key_hash(location: ObjectLocation) -> int:
    """The number under which a key is locked.

    Two keys may share one: then they wait for each other without need, and nothing worse.
    """
    digest = blake2b(location.project_id, digest_size=8)
    digest.update(location.bucket.encode())
    digest.update(b"\0")
    digest.update(location.key)
    return int.from_bytes(digest.digest(), "big", signed=True)
