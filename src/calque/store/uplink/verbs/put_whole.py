"""Store an object of one segment on nodes: its pieces, then one transaction.

An upload is begun, its segment committed and then the object: three transactions, each of which
waits for a disk. Here there is nothing before the pieces and one call after them. Should its answer
be lost, the call cannot be repeated: whoever deleted the object meanwhile has freed its pieces. So
this is for a satellite in the same process. Killed midway it leaves pieces that no row names, as
any upload does, and no pending upload.
"""

from __future__ import annotations

from datetime import datetime

from calque import faults
from calque.errors import Aborted, AlreadyExists, ConditionNotMatch
from calque.store.chunks import ChunkReader
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.metainfo.timestamps import as_timestamp, as_utc
from calque.store.nodes.upload import discard_pieces
from calque.store.uplink.encryption.access import Located
from calque.store.uplink.encryption.blocks import BlockCipher, SegmentEncryption
from calque.store.uplink.encryption.metadata import seal_metadata
from calque.store.uplink.encryption.segment_keys import Position, new_segment_key, wrap_segment_key
from calque.store.uplink.objects import ObjectInfo, bare_info
from calque.store.uplink.segments.write_segments import (
    REFUSED,
    describe_segment,
    position_message,
    put_on_nodes,
)
from calque.store.uplink.session import Session
from calque.store.uplink.verbs.put_inline import Commit
from calque.values import MIB

LARGEST = MIB
"""Bytes that are held until all of them are here."""


def may_put_whole(session: Session, source: ChunkReader) -> bool:
    """Whether all that is left of a source can be stored so; reads a little of it."""
    if session.metainfo.may_lose_answers:
        return False
    most = min(LARGEST, session.limits.segment_size)
    return source.fill(most + 1) <= most


def put_whole(
    session: Session,
    located: Located,
    source: ChunkReader,
    expires: datetime | None,
    commit: Commit,
) -> ObjectInfo:
    """Store what is left of a source, which fits into one segment; all of it or nothing."""
    parameters = session.settings.encryption
    metadata = commit.metadata() if callable(commit.metadata) else commit.metadata
    sealed = seal_metadata(parameters.suite, located, metadata)
    key = new_segment_key()
    begun = session.metainfo.begin_segment(
        pb.SegmentBeginRequest(
            header=session.header,
            position=position_message(Position(0, 0)),
            bucket=located.bucket,
            encrypted_object_key=located.encrypted,
            expires_at=as_timestamp(expires),
            encryption_parameters=parameters.message(),
        )
    )
    blocks = SegmentEncryption(
        BlockCipher(key, parameters), source, session.limits.segment_size, parameters.plain_block
    )
    # The nodes are told the same moment as the satellite.
    until = as_utc(expires) if expires is not None else None
    held = put_on_nodes(session, begun, blocks, until)
    wrapped = wrap_segment_key(parameters.suite, located, key, Position(0, 0))
    request = pb.ObjectPutRequest(
        header=session.header,
        segment=describe_segment(begun, wrapped, parameters, blocks.plain_size, held),
        encrypted_metadata_nonce=sealed.nonce,
        encrypted_metadata=sealed.encrypted,
        encrypted_metadata_encrypted_key=sealed.wrapped_key,
        if_not_exists=commit.if_not_exists,
        if_match_stream_id=commit.if_match,
    )
    try:
        faults.point("upload.pieces")
        stored = session.metainfo.put_object(request).object
    except (*REFUSED, Aborted, AlreadyExists, ConditionNotMatch):
        discard_pieces(held, begun.root_piece_id)
        raise
    return bare_info(stored, located.bucket, located.key, dict(metadata))
