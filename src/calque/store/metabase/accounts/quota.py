"""What a project uses, charged in the transaction that commits, which is counted thereby.

One row a project would make all its commits queue for that row until the disk has
answered. So usage is spread over shards and each thread charges its own. The limit stays
exact: every shard has an allowance, the allowances add up to the limit, and a shard that
runs out locks all shards and spreads what is left anew.
"""

from __future__ import annotations

import itertools
import threading
from typing import NamedTuple

from sqlalchemy import ColumnElement, Update, bindparam, func, or_, select, update

from calque.errors import NotFound, ResourceExhausted
from calque.store.metabase.engine.statement import POSTGRES, Statement
from calque.store.metabase.engine.transaction import Step, Transaction
from calque.store.metabase.model.records import ObjectRecord
from calque.store.metabase.model.schema import project_usage, projects

POSTGRES_SHARDS = 16
"""Threads beyond so many share shards. A spread writes all of them, so there are not more."""

CLOSED = -(2**62)
"""An allowance below anything: the first charge of such a shard spreads the limit."""

_usage = project_usage.c
_shard = (_usage.project_id == bindparam("project"), _usage.shard == bindparam("of_shard"))


def charge_shard(
    more_bytes: ColumnElement[int],
    more_segments: ColumnElement[int],
    more_objects: ColumnElement[int],
) -> Update:
    """Add to one shard; changes no row when that would go beyond the shard's allowance."""
    return (
        update(project_usage)
        .where(
            *_shard,
            or_(
                _usage.allowed_bytes.is_(None),
                more_bytes <= 0,
                _usage.bytes + more_bytes <= _usage.allowed_bytes,
            ),
            or_(
                _usage.allowed_segments.is_(None),
                more_segments <= 0,
                _usage.segments + more_segments <= _usage.allowed_segments,
            ),
        )
        .values(
            bytes=_usage.bytes + more_bytes,
            segments=_usage.segments + more_segments,
            objects=_usage.objects + more_objects,
            changes=_usage.changes + 1,
        )
    )


CHARGE = Statement(
    "charge a shard",
    charge_shard(
        bindparam("more_bytes", type_=_usage.bytes.type),
        bindparam("more_segments", type_=_usage.segments.type),
        bindparam("more_objects", type_=_usage.objects.type),
    ),
)
LOCK_SHARDS = Statement(
    "lock the shards of a project",
    select(project_usage)
    .where(_usage.project_id == bindparam("project"))
    .order_by(_usage.shard)
    .with_for_update(),
)
PROJECT_LIMITS = Statement(
    "limits of a project",
    select(projects.c.limit_bytes, projects.c.limit_segments).where(
        projects.c.project_id == bindparam("project")
    ),
)
SET_SHARD = Statement(
    "set a shard",
    update(project_usage)
    .where(*_shard)
    .values(
        bytes=bindparam("new_bytes"),
        segments=bindparam("new_segments"),
        objects=bindparam("new_objects"),
        allowed_bytes=bindparam("new_allowed_bytes"),
        allowed_segments=bindparam("new_allowed_segments"),
        changes=_usage.changes + 1,
    ),
)
CHANGES = Statement(
    "changes of a project",
    select(func.sum(_usage.changes)).where(_usage.project_id == bindparam("project")),
)


class Usage(NamedTuple):
    """Bytes as stored (encrypted), segments and objects."""

    bytes: int = 0
    segments: int = 0
    objects: int = 0

    def plus(self, record: ObjectRecord) -> Usage:
        """This usage with one more committed object."""
        return Usage(
            self.bytes + record.total_encrypted_size,
            self.segments + record.segment_count,
            self.objects + 1,
        )

    def minus(self, record: ObjectRecord) -> Usage:
        """This usage with one committed object less."""
        return Usage(
            self.bytes - record.total_encrypted_size,
            self.segments - record.segment_count,
            self.objects - 1,
        )


def shard_count(dialect: str) -> int:
    """How many shards a project has: SQLite has one writer, so one."""
    return POSTGRES_SHARDS if dialect == POSTGRES else 1


def charge_step(transaction: Transaction, project_id: bytes, more: Usage) -> Step:
    """The statement that charges this thread's shard; it changes no row when that is full."""
    return CHARGE, {
        "project": project_id,
        "of_shard": my_shard(transaction.dialect),
        "more_bytes": more.bytes,
        "more_segments": more.segments,
        "more_objects": more.objects,
    }


def charge(transaction: Transaction, project_id: bytes, more: Usage) -> None:
    """Add ``more`` (which may be negative) or raise ``ResourceExhausted``."""
    settle(
        transaction, project_id, more, transaction.run(*charge_step(transaction, project_id, more))
    )


def count_change(transaction: Transaction, project_id: bytes) -> None:
    """Say that something changed which costs nothing: a name, or metadata."""
    charge(transaction, project_id, Usage())


def settle(transaction: Transaction, project_id: bytes, more: Usage, charged: int) -> None:
    """Finish what :func:`charge_step` began: ``charged`` is how many rows it changed."""
    if charged == 0:
        _spread_usage(transaction, project_id, more)


_next_shard = itertools.count()
_thread = threading.local()


def my_shard(dialect: str) -> int:
    """The shard that this thread charges."""
    if not hasattr(_thread, "number"):
        _thread.number = next(_next_shard)
    return int(_thread.number) % shard_count(dialect)


def _spread_usage(transaction: Transaction, project_id: bytes, more: Usage) -> None:
    """Charge under a lock on all shards and spread the rest of the limits evenly."""
    # All rows by number, in one statement: whoever else spreads waits at shard 0, and those who
    # charge hold one shard only and wait for none, so there is no circle.
    shards = transaction.rows(LOCK_SHARDS, {"project": project_id})
    limits = transaction.row(PROJECT_LIMITS, {"project": project_id})
    if not shards or limits is None:
        raise NotFound("the project does not exist")
    used = Usage(
        sum(row.bytes for row in map(_Shard._make, shards)) + more.bytes,
        sum(row.segments for row in map(_Shard._make, shards)) + more.segments,
        sum(row.objects for row in map(_Shard._make, shards)) + more.objects,
    )
    _refuse_beyond(limits[0], used.bytes, more.bytes, "bytes")
    _refuse_beyond(limits[1], used.segments, more.segments, "segments")
    for number in range(len(shards)):
        transaction.run(
            SET_SHARD,
            {
                "project": project_id,
                "of_shard": number,
                # All of the usage goes to shard 0; each shard gets its part of the rest.
                "new_bytes": used.bytes if number == 0 else 0,
                "new_segments": used.segments if number == 0 else 0,
                "new_objects": used.objects if number == 0 else 0,
                "new_allowed_bytes": _allowance(limits[0], used.bytes, number, len(shards)),
                "new_allowed_segments": _allowance(limits[1], used.segments, number, len(shards)),
            },
        )


class _Shard(NamedTuple):
    project_id: bytes
    shard: int
    bytes: int
    segments: int
    objects: int
    allowed_bytes: int | None
    allowed_segments: int | None
    changes: int


def _refuse_beyond(limit: int | None, used: int, more: int, what: str) -> None:
    if limit is not None and more > 0 and used > limit:
        raise ResourceExhausted(
            f"the project may hold {limit} {what} and would hold {used}",
            hint="Delete objects or raise the project's limit.",
        )


def _allowance(limit: int | None, used: int, number: int, shards: int) -> int | None:
    """A shard's part: what it uses now plus its share of what is left.

    Beyond a limit that was lowered every shard is closed: what one lets go must not be taken up
    again by another.
    """
    if limit is None:
        return None
    left = limit - used
    if left < 0:
        return CLOSED
    share = left // shards + (left % shards if number == 0 else 0)
    return (used if number == 0 else 0) + share
