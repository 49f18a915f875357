"""Buckets: their rows, and how every other operation finds the one it works in."""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import bindparam, select

from calque.errors import NotFound
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.model.schema import buckets

# What is written into a bucket holds its row, so that the bucket cannot be deleted meanwhile.
BUCKET_PLACEMENT = Statement(
    "placement of a bucket",
    select(buckets.c.placement)
    .where(buckets.c.project_id == bindparam("project_id"), buckets.c.name == bindparam("bucket"))
    .with_for_update(read=True, key_share=True),
)
BUCKET_EXISTS = Statement(
    "bucket exists",
    select(buckets.c.placement).where(
        buckets.c.project_id == bindparam("project_id"), buckets.c.name == bindparam("bucket")
    ),
)


class BucketRecord(NamedTuple):
    """A row of ``buckets``."""

    project_id: bytes
    name: str
    created_at: int
    placement: int


def require_bucket(rows: list[Any], name: str, which: str = "") -> int:
    """The placement in the rows of a bucket statement, or ``NotFound`` naming the bucket."""
    return require_placement_of(rows[0][0] if rows else None, name, which)


def require_placement_of(placement: int | None, name: str, which: str = "") -> int:
    """``placement``, or ``NotFound`` naming the bucket that has none because it is not there."""
    if placement is None:
        raise missing_bucket(name, which)
    return placement


def missing_bucket(name: str, which: str = "") -> NotFound:
    """The error that says which bucket is not there, and how to make it."""
    lead = f"{which} " if which else ""
    return NotFound(
        f"{lead}bucket {name!r} does not exist", hint=f"Make it with: calque store mkbucket {name}"
    )
