"""Slices of an upload that belong together are joined when it is committed.

Those that make up the whole of one object become an ordinary copy of it. That is what clients send
that copy in ranges of their own: every byte of the source, in order. The copy then has the segments
of the source and one reference, as if it had been asked for. Of others, those that touch in one
segment of a source become one slice: each costs a row, and a read of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import bindparam, insert, update

from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model.packed_keys import PackedKeys
from calque.store.metabase.model.records import (
    NONCE_SIZE,
    WRAPPED_KEY_SIZE,
    Encryption,
    FreedSegment,
    ObjectRecord,
    SegmentRecord,
)
from calque.store.metabase.model.schema import (
    COMMITTED,
    segment_copies,
    segment_slices,
    segments,
)
from calque.store.metabase.objects.commit_segment import INSERT_SEGMENT, drop_segments
from calque.store.metabase.objects.copy_part import SEGMENTS_BETWEEN, sliced_size
from calque.store.metabase.streams.given_streams import give_streams
from calque.store.metabase.streams.lookup import record_by_stream
from calque.store.metabase.streams.promotion import DELETE_SEGMENTS
from calque.store.metabase.streams.slices import FORGET_SLICES, Slice, slices_of

REFER = Statement("refer to the source of joined slices", insert(segment_copies))
LENGTHEN_SLICE = Statement(
    "lengthen a slice",
    update(segment_slices)
    .where(
        segment_slices.c.stream_id == bindparam("of_stream"),
        segment_slices.c.position == bindparam("at_position"),
    )
    .values(length=bindparam("new_length")),
)
LENGTHEN_SEGMENT = Statement(
    "lengthen the segment of a slice",
    update(segments)
    .where(
        segments.c.stream_id == bindparam("of_stream"),
        segments.c.position == bindparam("at_position"),
    )
    .values(plain_size=bindparam("new_length"), encrypted_size=bindparam("new_encrypted_size")),
)
_EVERYTHING = {"first": 0, "last": 2**63 - 1}


def join_slices(transaction: Transaction, upload: ObjectRecord, keys: PackedKeys) -> None:
    """Make the upload a copy, where its slices are one whole object, which ``keys`` fit.

    Otherwise nothing is done: what they are then is a list of slices. The caller holds the locks.
    """
    stream_id = upload.stream_id
    slices = slices_of(transaction, [stream_id]).get(stream_id, [])
    sources = {each.source_stream_id for each in slices}
    if len(sources) != 1:
        return
    (source_id,) = sources
    source = record_by_stream(transaction, source_id)
    if source is None or not _may_lend(source, upload, transaction.now):
        return
    own = transaction.rows(SEGMENTS_BETWEEN, {"of_stream": stream_id, **_EVERYTHING})
    rows = transaction.rows(SEGMENTS_BETWEEN, {"of_stream": source_id, **_EVERYTHING})
    whole = [SegmentRecord(*row) for row in rows]
    if len(own) != len(slices) or not _cover(slices, whole):
        return
    if keys.positions != tuple(segment.position for segment in whole):
        return
    transaction.run(FORGET_SLICES, {"of_stream": stream_id})
    transaction.run(DELETE_SEGMENTS, give_streams(transaction, [stream_id]))
    transaction.run_batch(
        [
            (INSERT_SEGMENT, _copy(segment, number, stream_id, keys, transaction.now)._asdict())
            for number, segment in enumerate(whole)
        ]
    )
    transaction.run(REFER, {"stream_id": stream_id, "ancestor_stream_id": source_id})


def join_neighbours(transaction: Transaction, upload: ObjectRecord) -> list[FreedSegment]:
    """Make slices of an upload that touch one; what that leaves to be freed. The caller holds the
    locks.

    All slices of a segment have its key, so the first of them keeps its own. Where parts meet in
    a joined slice, nobody can tell any more where they did.
    """
    stream_id = upload.stream_id
    slices = {
        each.position: each for each in slices_of(transaction, [stream_id]).get(stream_id, [])
    }
    if len(slices) < 2:
        return []
    rows = transaction.rows(SEGMENTS_BETWEEN, {"of_stream": stream_id, **_EVERYTHING})
    runs = _find_runs([slices.get(SegmentRecord(*row).position) for row in rows])
    encryption = Encryption.decode(upload.encryption)
    for run in runs:
        length = sum(each.length for each in run)
        where = {"of_stream": stream_id, "at_position": run[0].position, "new_length": length}
        transaction.run(LENGTHEN_SLICE, where)
        size = sliced_size(length, encryption)
        transaction.run(LENGTHEN_SEGMENT, {**where, "new_encrypted_size": size})
    return drop_segments(
        transaction, stream_id, [each.position for run in runs for each in run[1:]]
    )


def _find_runs(slices: Sequence[Slice | None]) -> list[list[Slice]]:
    """Two and more, one after the other, of which each begins where the one before it ends."""
    runs: list[list[Slice]] = []
    before: Slice | None = None
    for each in slices:
        if each is not None and before is not None and _touch(before, each):
            runs[-1].append(each)
        elif each is not None:
            runs.append([each])
        before = each
    return [run for run in runs if len(run) > 1]


def _touch(one: Slice, other: Slice) -> bool:
    return (one.source_stream_id, one.source_position, one.skip + one.length) == (
        other.source_stream_id,
        other.source_position,
        other.skip,
    )


def _may_lend(source: ObjectRecord, upload: ObjectRecord, now: int) -> bool:
    return (
        source.status == COMMITTED
        and not source.is_expired(now)
        and source.expires_at == upload.expires_at
        and source.encryption == upload.encryption
    )


def _cover(slices: Sequence[Slice], whole: Sequence[SegmentRecord]) -> bool:
    """Whether the slices, one after the other, are all bytes of all segments and nothing else."""
    waiting = iter(slices)
    for segment in whole:
        if segment.remote_alias_pieces is None:
            return False
        reached = 0
        while reached < segment.plain_size:
            part = next(waiting, None)
            if part is None or (part.source_position, part.skip) != (segment.position, reached):
                return False
            reached += part.length
        if reached != segment.plain_size:
            return False
    return next(waiting, None) is None


def _copy(
    segment: SegmentRecord, number: int, stream_id: bytes, keys: PackedKeys, now: int
) -> SegmentRecord:
    return segment._replace(
        stream_id=stream_id,
        created_at=now,
        repaired_at=None,
        encrypted_key_nonce=keys.nonces[number * NONCE_SIZE : (number + 1) * NONCE_SIZE],
        encrypted_key=keys.keys[number * WRAPPED_KEY_SIZE : (number + 1) * WRAPPED_KEY_SIZE],
        remote_alias_pieces=None,
    )
