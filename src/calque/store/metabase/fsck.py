"""Is the metabase whole? Reads everything in one snapshot and names what is wrong.

What must hold, and is checked here:

1. every segment belongs to an object, every object to a bucket, every bucket to a project;
2. a committed object has as many segments and bytes as its row says, and its offsets run on;
3. a segment without pieces, inline data and zero size is borrowed: its stream has a
   reference, and the ancestor has pieces at that position;
4. an ancestor is an original (no chains), a committed object, with at most 100 copies;
5. every reference belongs to an object, which borrows at least one segment;
6. a project's usage is the sum of its committed objects;
7. copies expire with their ancestor; packed pieces can be read and name known nodes;
8. stored keys belong to an operation that is still collecting;
9. pieces that wait to be deleted belong to no segment.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlalchemy import select

from calque.errors import IntegrityError
from calque.store.metabase.accounts.nodes import ALL_NODES
from calque.store.metabase.accounts.quota import Usage
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model import packed_pieces as pieces
from calque.store.metabase.model.records import ObjectRecord, SegmentRecord
from calque.store.metabase.model.schema import (
    COLLECTING,
    COMMITTED,
    buckets,
    freed_segments,
    objects,
    operation_keys,
    operation_objects,
    operations,
    project_usage,
    projects,
    segment_copies,
    segment_slices,
    segments,
)
from calque.store.metabase.streams.slices import Slice

_WHY = "fsck compares everything with everything"

FSCK_PROJECTS = Statement("fsck projects", select(projects.c.project_id), whole_table=_WHY)
FSCK_USAGE = Statement(
    "fsck usage",
    select(
        project_usage.c.project_id,
        project_usage.c.bytes,
        project_usage.c.segments,
        project_usage.c.objects,
    ),
    whole_table=_WHY,
)
FSCK_BUCKETS = Statement(
    "fsck buckets", select(buckets.c.project_id, buckets.c.name), whole_table=_WHY
)
FSCK_OBJECTS = Statement("fsck objects", select(objects), whole_table=_WHY)
FSCK_SEGMENTS = Statement(
    "fsck segments",
    select(segments).order_by(segments.c.stream_id, segments.c.position),
    whole_table=_WHY,
)
FSCK_COPIES = Statement(
    "fsck references",
    select(segment_copies.c.stream_id, segment_copies.c.ancestor_stream_id),
    whole_table=_WHY,
)
FSCK_SLICES = Statement("fsck slices", select(segment_slices), whole_table=_WHY)
FSCK_OPERATIONS = Statement(
    "fsck operations",
    select(operations.c.operation_id, operations.c.state),
    whole_table=_WHY,
)
FSCK_KEYS = Statement(
    "fsck operation keys", select(operation_keys.c.operation_id), whole_table=_WHY
)
FSCK_STAGED = Statement(
    "fsck operation objects", select(operation_objects.c.operation_id).distinct(), whole_table=_WHY
)
FSCK_FREED = Statement(
    "fsck freed segments", select(freed_segments.c.root_piece_id), whole_table=_WHY
)


class Finding(NamedTuple):
    """One thing that is wrong: a short kind, and where."""

    kind: str
    where: str


@dataclass
class _Tables:
    """The whole metabase in memory, as one snapshot saw it."""

    projects: set[bytes]
    usage: dict[bytes, Usage]
    buckets: set[tuple[bytes, str]]
    objects: dict[bytes, ObjectRecord]
    segments: dict[bytes, list[SegmentRecord]] = field(default_factory=dict)
    ancestors: dict[bytes, bytes] = field(default_factory=dict)
    slices: dict[tuple[bytes, int], Slice] = field(default_factory=dict)
    nodes: set[int] = field(default_factory=set)
    operations: dict[bytes, int] = field(default_factory=dict)
    key_owners: set[bytes] = field(default_factory=set)
    freed: set[bytes] = field(default_factory=set)


def fsck(database: Database) -> list[Finding]:
    """Everything that is wrong; an empty list means whole."""
    tables = database.read(_load)
    return [
        *_check_owners(tables),
        *_check_totals(tables),
        *_check_references(tables),
        *_check_borrowed(tables),
        *_check_slices(tables),
        *_check_pieces(tables),
        *_check_usage(tables),
        *_check_operations(tables),
    ]


def _load(transaction: Transaction) -> _Tables:
    usage: dict[bytes, Usage] = {}
    for project, *more in transaction.rows(FSCK_USAGE, {}):
        before = usage.get(project, Usage())
        usage[project] = Usage(*(a + b for a, b in zip(before, more, strict=True)))
    records = [ObjectRecord(*row) for row in transaction.rows(FSCK_OBJECTS, {})]
    by_stream: dict[bytes, list[SegmentRecord]] = defaultdict(list)
    for row in transaction.rows(FSCK_SEGMENTS, {}):
        by_stream[row[0]].append(SegmentRecord(*row))
    return _Tables(
        projects={row[0] for row in transaction.rows(FSCK_PROJECTS, {})},
        usage=usage,
        buckets={(row[0], row[1]) for row in transaction.rows(FSCK_BUCKETS, {})},
        objects={record.stream_id: record for record in records},
        segments=dict(by_stream),
        ancestors={row[0]: row[1] for row in transaction.rows(FSCK_COPIES, {})},
        slices={(row[0], row[1]): Slice(*row) for row in transaction.rows(FSCK_SLICES, {})},
        nodes={row[0] for row in transaction.rows(ALL_NODES, {})},
        operations={row[0]: row[1] for row in transaction.rows(FSCK_OPERATIONS, {})},
        key_owners={
            row[0] for each in (FSCK_KEYS, FSCK_STAGED) for row in transaction.rows(each, {})
        },
        freed={row[0] for row in transaction.rows(FSCK_FREED, {})},
    )


def _check_owners(tables: _Tables) -> Iterator[Finding]:
    lending = {(each.source_stream_id, each.source_position) for each in tables.slices.values()}
    for stream_id in tables.segments.keys() - tables.objects.keys():
        own = {(stream_id, segment.position) for segment in tables.segments[stream_id]}
        if own - lending:
            yield Finding("segments without object", stream_id.hex())
    for record in tables.objects.values():
        if (record.project_id, record.bucket_name) not in tables.buckets:
            yield Finding("object without bucket", record.stream_id.hex())
    for project_id, name in tables.buckets:
        if project_id not in tables.projects:
            yield Finding("bucket without project", name)


def _check_totals(tables: _Tables) -> Iterator[Finding]:
    for stream_id, record in tables.objects.items():
        if record.status != COMMITTED:
            continue
        own = tables.segments.get(stream_id, [])
        counted = (
            len(own),
            sum(segment.plain_size for segment in own),
            sum(segment.encrypted_size for segment in own),
        )
        stated = (record.segment_count, record.total_plain_size, record.total_encrypted_size)
        if counted != stated:
            yield Finding("wrong totals", f"{stream_id.hex()}: {stated} stated, {counted} counted")
        offset = 0
        for segment in own:
            if segment.plain_offset != offset:
                yield Finding("wrong offset", f"{stream_id.hex()} at {segment.position}")
            offset += segment.plain_size
            if segment.expires_at != record.expires_at:
                yield Finding("segment expires apart from its object", stream_id.hex())


def _check_references(tables: _Tables) -> Iterator[Finding]:
    for stream_id, ancestor in tables.ancestors.items():
        where = f"{stream_id.hex()} → {ancestor.hex()}"
        copy, original = tables.objects.get(stream_id), tables.objects.get(ancestor)
        if copy is None:
            yield Finding("orphaned reference", where)
        elif not any(
            segment.is_borrowed and (stream_id, segment.position) not in tables.slices
            for segment in tables.segments.get(stream_id, [])
        ):
            yield Finding("reference that borrows nothing", where)
        if original is None or original.status != COMMITTED:
            yield Finding("dangling ancestor", where)
        elif copy is not None and copy.expires_at != original.expires_at:
            yield Finding("copy expires apart from its ancestor", where)
        if ancestor in tables.ancestors:
            yield Finding("chained ancestor", where)
    holders = Counter(tables.ancestors.values())
    holders.update(
        source
        for source, _ in {
            (each.source_stream_id, each.stream_id) for each in tables.slices.values()
        }
    )
    for ancestor, copies in holders.items():
        if copies > verify.MAX_LIVE_COPIES:
            yield Finding("too many copies", f"{ancestor.hex()} has {copies}")


def _check_borrowed(tables: _Tables) -> Iterator[Finding]:
    for stream_id, own in tables.segments.items():
        ancestor = tables.ancestors.get(stream_id, b"")
        lent = {segment.position: segment for segment in tables.segments.get(ancestor, [])}
        for segment in own:
            if not segment.is_borrowed or (stream_id, segment.position) in tables.slices:
                continue
            lender = lent.get(segment.position)
            where = f"{stream_id.hex()} at {segment.position}"
            if lender is None or lender.remote_alias_pieces is None:
                yield Finding("piece-less segment without ancestor", where)
            elif lender.root_piece_id != segment.root_piece_id:
                yield Finding("root piece id differs from the ancestor's", where)


def _check_slices(tables: _Tables) -> Iterator[Finding]:
    by_place = {
        (stream_id, segment.position): segment
        for stream_id, own in tables.segments.items()
        for segment in own
    }
    for place, each in tables.slices.items():
        where = f"{each.stream_id.hex()} at {each.position}"
        segment = by_place.get(place)
        source = by_place.get((each.source_stream_id, each.source_position))
        if segment is None or each.stream_id not in tables.objects:
            yield Finding("orphaned slice", where)
        elif not segment.is_borrowed or segment.plain_size != each.length:
            yield Finding("slice that is no segment's", where)
        if source is None or source.remote_alias_pieces is None:
            yield Finding("slice of a segment without pieces", where)
            continue
        if each.skip < 0 or each.length < 1 or each.skip + each.length > source.plain_size:
            yield Finding("slice beyond its source", where)
        if segment is not None and segment.root_piece_id != source.root_piece_id:
            yield Finding("root piece id differs from the source's", where)
        if segment is not None and segment.expires_at != source.expires_at:
            yield Finding("slice expires apart from its source", where)


def _check_pieces(tables: _Tables) -> Iterator[Finding]:
    roots: Counter[bytes] = Counter()
    for stream_id, own in tables.segments.items():
        for segment in own:
            if segment.remote_alias_pieces is None:
                continue
            roots[segment.root_piece_id] += 1
            where = f"{stream_id.hex()} at {segment.position}"
            if segment.inline_data is not None:
                yield Finding("segment both inline and remote", where)
            if stream_id in tables.ancestors:
                yield Finding("copy that holds pieces", where)
            try:
                placed = pieces.unpack(segment.remote_alias_pieces)
            except IntegrityError:
                yield Finding("damaged pieces", where)
                continue
            if {alias for _, alias in placed} - tables.nodes:
                yield Finding("pieces on unknown nodes", where)
    for root, holders in roots.items():
        if holders > 1:
            yield Finding("pieces held twice", root.hex())
        if root in tables.freed:
            yield Finding("pieces held and to be deleted", root.hex())


def _check_usage(tables: _Tables) -> Iterator[Finding]:
    counted = dict.fromkeys(tables.projects, Usage())
    for record in tables.objects.values():
        if record.status == COMMITTED:
            counted[record.project_id] = counted.get(record.project_id, Usage()).plus(record)
    for project_id, usage in counted.items():
        charged = tables.usage.get(project_id, Usage())
        if charged != usage:
            where = f"{project_id.hex()}: {tuple(charged)} charged, {tuple(usage)} counted"
            yield Finding("quota drift", where)


def _check_operations(tables: _Tables) -> Iterator[Finding]:
    for operation_id in tables.key_owners:
        if tables.operations.get(operation_id) != COLLECTING:
            yield Finding("keys without operation", operation_id.hex())
