"""The rules of a copy, each said once: a condition in SQL, and the error of breaking it.

A usual copy (``copy_at_once.py``) is written only where all of them hold, in the statement that
writes; it cannot tell which one did not. Every other copy, and every move, has them answered one
by one in a single look (``both_ends.py``) and raises the error of the first that is broken.

Two more are no conditions on rows: the keys must be those of the source's segments
(``PackedKeys.must_match``), and the project must have the quota (``quota.charge``). That an
operation is finished once only is no rule that can be broken either: a repeat is answered with
what the first one made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    LargeBinary,
    and_,
    bindparam,
    case,
    func,
    literal_column,
    or_,
    select,
)

from calque.errors import CalqueError, FailedPrecondition, InvalidInput
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.object_keys import key_is, key_parameter
from calque.store.metabase.model.schema import objects, segments
from calque.store.metabase.streams.slices import count_holders, no_room

NO_POSITION = -1
"""Stands for the first and the last position of a source without segments."""

source = objects.alias("source")
source_stream = bindparam("source_stream", type_=LargeBinary)
override = bindparam("override", type_=Boolean)
now = bindparam("now", type_=BigInteger)

is_remote_segment = and_(segments.c.inline_data.is_(None), segments.c.encrypted_size > 0)
"""Whether a segment's data are pieces on nodes: its own, or those of an ancestor."""

_nowhere: ColumnElement[int] = literal_column(str(NO_POSITION))
parts = (
    select(
        func.count().label("count"),
        func.coalesce(func.min(segments.c.position), _nowhere).label("first"),
        func.coalesce(func.max(segments.c.position), _nowhere).label("last"),
        func.min(case((is_remote_segment, segments.c.placement))).label("lowest"),
        func.max(case((is_remote_segment, segments.c.placement))).label("highest"),
    )
    .where(segments.c.stream_id == source_stream)
    .subquery("parts")
)
"""The source's segments in one row; ``lowest`` and ``highest`` are placements of remote ones."""
source_is_remote = parts.c.lowest.is_not(None)

at_source = and_(
    source.c.project_id == bindparam("project_id"),
    source.c.bucket_name == bindparam("source_bucket"),
    key_is(source.c.object_key, key_parameter("source_key")),
    source.c.status == literal_column("3"),
)
"""How the source is found; whether it may be copied is for the rules."""


class Rule(NamedTuple):
    """What must hold, and what to raise where it does not."""

    holds: ColumnElement[bool]
    error: Callable[[], CalqueError]


SOURCE_IS_THERE = Rule(
    # Where the source is the outer side of a join its columns may all be NULL.
    and_(
        source.c.stream_id.is_not(None),
        or_(source.c.expires_at.is_(None), source.c.expires_at > now),
    ),
    lambda: FailedPrecondition("the source was deleted or has expired since the operation began"),
)
SOURCE_IS_THE_SAME = Rule(
    source.c.stream_id == source_stream,
    lambda: FailedPrecondition("the source was replaced since the operation began"),
)
SOURCE_RULES = (SOURCE_IS_THERE, SOURCE_IS_THE_SAME)
"""The source is what the client saw at Begin. They are asked in this order."""

_has_metadata = (
    func.coalesce(func.length(source.c.encrypted_metadata_encrypted_key), literal_column("0")) > 0
)
_is_rewrapped = bindparam("rewrapped", type_=Boolean)

METADATA_KEY_CAME = Rule(
    or_(override, ~_has_metadata, _is_rewrapped),
    lambda: InvalidInput("the re-wrapped metadata key of the source is missing"),
)
METADATA_KEY_HAS_USE = Rule(
    or_(override, _has_metadata, ~_is_rewrapped),
    lambda: InvalidInput("the re-wrapped metadata key of the source is given, but there is none"),
)
METADATA_RULES = (METADATA_KEY_CAME, METADATA_KEY_HAS_USE)
"""Metadata that stays needs its key re-wrapped; where there is none, none may come."""


def placement_rule(placement: ColumnElement[int]) -> Rule:
    """The source's pieces may serve a bucket of ``placement``; 0 takes pieces from anywhere."""
    return Rule(
        or_(
            placement == literal_column("0"),
            ~source_is_remote,
            and_(parts.c.lowest == placement, parts.c.highest == placement),
        ),
        lambda: FailedPrecondition(
            "the destination bucket has another placement than the pieces of the source"
        ),
    )


def room_rule(ancestor: ColumnElement[bytes]) -> Rule:
    """One more stream may borrow the pieces of ``ancestor``.

    Only true while the family of ``ancestor`` is locked: so it is asked apart from the others,
    which need no more than the locks on both keys.
    """
    return Rule(
        count_holders(ancestor) < literal_column(str(verify.MAX_LIVE_COPIES)),
        no_room,
    )


def conditions_of(*rules: Rule) -> tuple[ColumnElement[bool], ...]:
    """What a statement must find true to do its work only where all ``rules`` hold."""
    return tuple(rule.holds for rule in rules)


def require(rules: Iterable[Rule], answers: Iterable[Any]) -> None:
    """Raise the error of the first of ``rules`` whose answer is not true (NULL is not)."""
    for rule, holds in zip(rules, answers, strict=True):
        if not holds:
            raise rule.error()
