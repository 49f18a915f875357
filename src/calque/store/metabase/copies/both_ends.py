"""Everything a copy or move must know about its two ends, in one look.

One statement instead of six: on PostgreSQL the trips and the driver cost more than the
rows do. The rules of a copy are answered in the same look, one column each.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from sqlalchemy import ColumnElement, and_, bindparam, func, literal_column, select, true

from calque.store.metabase.accounts.buckets import require_placement_of
from calque.store.metabase.copies.operations import OperationRecord
from calque.store.metabase.copies.rules import (
    METADATA_RULES,
    SOURCE_RULES,
    at_source,
    conditions_of,
    parts,
    placement_rule,
    require,
    source,
    source_is_remote,
)
from calque.store.metabase.copies.store_copy import object_of_copy
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.model.object_keys import key_is, key_parameter
from calque.store.metabase.model.records import ObjectRecord
from calque.store.metabase.model.schema import (
    buckets,
    objects,
    operations,
    segment_copies,
    segments,
)
from calque.store.metabase.streams.lookup import AT_KEY, FoundObject

_source_copy = segment_copies.alias("source_copy")
_existing = objects.alias("existing")
_existing_copy = segment_copies.alias("existing_copy")
_at_target = and_(
    _existing.c.project_id == bindparam("project_id"),
    _existing.c.bucket_name == bindparam("bucket"),
    key_is(_existing.c.object_key, key_parameter("key")),
    _existing.c.status == literal_column("3"),
)
_version = (
    select(func.coalesce(func.max(objects.c.version), 0) + 1).where(*AT_KEY).scalar_subquery()
)
# The bucket's row is held until the commit, so that the bucket is not deleted meanwhile.
_placement = (
    select(buckets.c.placement)
    .where(buckets.c.project_id == bindparam("project_id"), buckets.c.name == bindparam("bucket"))
    .with_for_update(read=True, key_share=True)
    .scalar_subquery()
)
_target = select(_placement.label("placement"), _version.label("version")).subquery("target")

_FIT_RULES = (*METADATA_RULES, placement_rule(_target.c.placement))


def _look_at_ends(name: str, *more: ColumnElement[Any]) -> Statement:
    return Statement(
        name,
        select(
            _target.c.placement,
            _target.c.version,
            source_is_remote.label("is_remote"),
            *conditions_of(*SOURCE_RULES, *_FIT_RULES),
            operations,
            source,
            _source_copy.c.ancestor_stream_id,
            _existing,
            _existing_copy.c.ancestor_stream_id,
            *more,
        ).select_from(
            _target.join(parts, true())
            .outerjoin(operations, operations.c.operation_id == bindparam("operation_id"))
            .outerjoin(source, at_source)
            .outerjoin(_source_copy, _source_copy.c.stream_id == source.c.stream_id)
            .outerjoin(_existing, _at_target)
            .outerjoin(_existing_copy, _existing_copy.c.stream_id == _existing.c.stream_id)
        ),
    )


ENDS_OF_MOVE = _look_at_ends("both ends of a move")
ENDS_OF_COPY = _look_at_ends(
    "both ends of a copy, and its object", *object_of_copy(_target.c.version)
)
SOURCE_POSITIONS = Statement(
    "positions of a source",
    select(segments.c.position)
    .where(segments.c.stream_id == bindparam("source_stream"))
    .order_by(segments.c.position),
)


class BothEnds(NamedTuple):
    """The destination's bucket, next version and object; the source; the operation; the answers
    to the rules."""

    placement: int | None
    version: int
    is_remote: bool
    """Whether the source has pieces on nodes, so that a copy borrows them."""
    source_answers: tuple[Any, ...]
    fit_answers: tuple[Any, ...]
    operation: OperationRecord | None
    source: FoundObject | None
    existing: FoundObject | None

    def require_bucket(self, name: str) -> None:
        """``NotFound`` unless the destination's bucket is there."""
        require_placement_of(self.placement, name, "destination")

    def require_source(self) -> FoundObject:
        """The source as it was at Begin, or ``FailedPrecondition``."""
        require(SOURCE_RULES, self.source_answers)
        return cast(FoundObject, self.source)

    def require_fit(self) -> None:
        """The metadata's key is the right one, and the pieces may serve the bucket."""
        require(_FIT_RULES, self.fit_answers)


def read_ends(rows: list[Any]) -> BothEnds:
    """What the one row of a look says."""
    columns = iter(rows[0])

    def take(count: int) -> tuple[Any, ...]:
        return tuple(next(columns) for _ in range(count))

    placement, version, is_remote = take(3)
    source_answers, fit_answers = take(len(SOURCE_RULES)), take(len(_FIT_RULES))
    operation = take(len(OperationRecord._fields))
    return BothEnds(
        placement,
        version,
        bool(is_remote),
        source_answers,
        fit_answers,
        OperationRecord(*operation) if operation[0] is not None else None,
        _object_in(take(len(ObjectRecord._fields) + 1)),
        _object_in(take(len(ObjectRecord._fields) + 1)),
    )


def read_copy(rows: list[Any]) -> ObjectRecord:
    """The object that the copy will be: the last columns of ``ENDS_OF_COPY``.

    Only of use once its source was found: until then it holds what was asked for and NULLs.
    """
    return ObjectRecord(*rows[0][-len(ObjectRecord._fields) :])


def _object_in(fields: tuple[Any, ...]) -> FoundObject | None:
    if fields[0] is None:
        return None
    *columns, ancestor = fields
    return FoundObject(ObjectRecord(*columns), ancestor)
