"""Store a small object: one call, one transaction."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from datetime import datetime

from calque.store.chunks import ChunkReader
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.metainfo.timestamps import as_timestamp
from calque.store.uplink.encryption.access import Located
from calque.store.uplink.encryption.blocks import BlockCipher
from calque.store.uplink.encryption.metadata import GivenMetadata, seal_metadata
from calque.store.uplink.encryption.segment_keys import Position, new_segment_key, wrap_segment_key
from calque.store.uplink.objects import ObjectInfo, bare_info
from calque.store.uplink.session import Session


@dataclass(frozen=True, slots=True)
class Commit:
    """How an upload ends: its metadata, and what must be at the key then."""

    metadata: GivenMetadata
    if_not_exists: bool
    if_match: bytes


def put_inline(
    session: Session,
    located: Located,
    source: ChunkReader,
    expires: datetime | None,
    commit: Commit,
) -> ObjectInfo:
    """Store what is left of a source, which fits into one inline segment; all of it or nothing."""
    parameters = session.settings.encryption
    plain = bytes(source.read(session.limits.inline_size)) if session.limits.inline_size else b""
    metadata = commit.metadata() if callable(commit.metadata) else commit.metadata
    sealed = seal_metadata(parameters.suite, located, metadata)
    request = pb.ObjectPutInlineRequest(
        header=session.header,
        bucket=located.bucket,
        encrypted_object_key=located.encrypted,
        request_id=_new_request_id(),
        expires_at=as_timestamp(expires),
        encryption_parameters=parameters.message(),
        encrypted_metadata_nonce=sealed.nonce,
        encrypted_metadata=sealed.encrypted,
        encrypted_metadata_encrypted_key=sealed.wrapped_key,
        if_not_exists=commit.if_not_exists,
        if_match_stream_id=commit.if_match,
    )
    if plain:
        key = new_segment_key()
        wrapped = wrap_segment_key(parameters.suite, located, key, Position(0, 0))
        request.encrypted_key_nonce = wrapped.nonce
        request.encrypted_key = wrapped.ciphertext
        request.inline_data = BlockCipher(key, parameters).encrypt(0, plain, last=True)
        request.plain_size = len(plain)
    stored = session.metainfo.put_inline_object(request).object
    return bare_info(stored, located.bucket, located.key, dict(metadata))


def _new_request_id() -> bytes:
    """By it a repeat is known; it begins with the time, so that new rows lie beside each other."""
    return (time.time_ns() // 1_000_000).to_bytes(6, "big") + os.urandom(10)
