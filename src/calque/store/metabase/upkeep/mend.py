"""Mend what fsck finds where there is one right answer: references, leftover keys, quota.

What could hide a loss is left: a total that differs from its segments may mean that segments are
missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sqlalchemy import bindparam, delete, func, literal_column, select, update

from calque import faults
from calque.store.metabase.accounts.projects import PROJECT_USAGE
from calque.store.metabase.accounts.quota import LOCK_SHARDS
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.fsck import Finding
from calque.store.metabase.model.schema import (
    objects,
    operation_keys,
    operation_objects,
    operations,
    project_usage,
    segment_copies,
    segment_slices,
    segments,
)

_borrows = (
    select(segments.c.position)
    .where(
        segments.c.stream_id == bindparam("of_stream"),
        segments.c.remote_alias_pieces.is_(None),
        segments.c.inline_data.is_(None),
        segments.c.encrypted_size > 0,
        # What is borrowed by a slice needs no reference.
        select(segment_slices.c.position)
        .where(
            segment_slices.c.stream_id == segments.c.stream_id,
            segment_slices.c.position == segments.c.position,
        )
        .limit(1)
        .scalar_subquery()
        .is_(None),
    )
    .exists()
)
FORGET_IDLE_REFERENCE = Statement(
    "forget a reference that borrows nothing",
    delete(segment_copies).where(segment_copies.c.stream_id == bindparam("of_stream"), ~_borrows),
)
_is_over = (
    ~select(operations.c.state)
    .where(
        operations.c.operation_id == bindparam("of_operation"),
        operations.c.state == literal_column("1"),
    )
    .exists()
)
FORGET_KEYS = Statement(
    "forget keys without operation",
    delete(operation_keys).where(
        operation_keys.c.operation_id == bindparam("of_operation"), _is_over
    ),
)
FORGET_STAGED = Statement(
    "forget objects without operation",
    delete(operation_objects).where(
        operation_objects.c.operation_id == bindparam("of_operation"), _is_over
    ),
)
COUNT_OBJECTS = Statement(
    "count the objects of a project",
    select(
        func.coalesce(func.sum(objects.c.total_encrypted_size), 0),
        func.coalesce(func.sum(objects.c.segment_count), 0),
        func.count(),
    ).where(objects.c.project_id == bindparam("project"), objects.c.status == literal_column("3")),
)
SET_USAGE = Statement(
    "correct the usage of a project",
    update(project_usage)
    .where(project_usage.c.project_id == bindparam("of_project"), project_usage.c.shard == 0)
    .values(
        bytes=project_usage.c.bytes + bindparam("more_bytes", type_=project_usage.c.bytes.type),
        segments=project_usage.c.segments
        + bindparam("more_segments", type_=project_usage.c.bytes.type),
        objects=project_usage.c.objects
        + bindparam("more_objects", type_=project_usage.c.bytes.type),
    ),
)


class Mended(NamedTuple):
    """A finding, and whether it is mended."""

    finding: Finding
    done: bool


def mend(database: Database, findings: list[Finding]) -> list[Mended]:
    """Mend what is safe, each under its locks; the rest is given back as it is."""
    return [Mended(each, _mend_one(database, each)) for each in findings]


def _mend_one(database: Database, finding: Finding) -> bool:
    work = _MENDERS.get(finding.kind)
    if work is None:
        return False
    key = bytes.fromhex(finding.where.partition(":")[0])
    done = database.write(lambda transaction: work(transaction, key))
    faults.point("fsck.mended")
    return done


def _forget_reference(transaction: Transaction, stream_id: bytes) -> bool:
    return transaction.run(FORGET_IDLE_REFERENCE, {"of_stream": stream_id}) > 0


def _forget_keys(transaction: Transaction, operation_id: bytes) -> bool:
    return transaction.run(FORGET_KEYS, {"of_operation": operation_id}) > 0


def _forget_staged(transaction: Transaction, operation_id: bytes) -> bool:
    return transaction.run(FORGET_STAGED, {"of_operation": operation_id}) > 0


def _correct_usage(transaction: Transaction, project_id: bytes) -> bool:
    # Every commit charges a shard in its own transaction: with all shards locked, the objects that
    # are seen are those that are charged.
    transaction.rows(LOCK_SHARDS, {"project": project_id})
    counted = transaction.rows(COUNT_OBJECTS, {"project": project_id})[0]
    charged = transaction.rows(PROJECT_USAGE, {"project": project_id})[0]
    more = [int(a) - int(b) for a, b in zip(counted, charged, strict=True)]
    names = ("more_bytes", "more_segments", "more_objects")
    changes = {"of_project": project_id, **dict(zip(names, more, strict=True))}
    return transaction.run(SET_USAGE, changes) > 0


_MENDERS: dict[str, Callable[[Transaction, bytes], bool]] = {
    "orphaned reference": _forget_reference,
    "reference that borrows nothing": _forget_reference,
    "keys without operation": _forget_keys,
    "objects without operation": _forget_staged,
    "quota drift": _correct_usage,
}
