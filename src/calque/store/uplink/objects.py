"""Objects as the client shows them: plain names, sizes and times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.metainfo.timestamps import as_datetime
from calque.store.uplink.encryption.access import Located
from calque.store.uplink.encryption.blocks import EncryptionParameters
from calque.store.uplink.encryption.metadata import SealedMetadata, open_metadata
from calque.values.metadata import EMPTY


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """A committed object. ``etag`` names these very contents; conditions take it."""

    bucket: str
    key: str
    size: int
    etag: str
    version: int
    created: datetime
    expires: datetime | None
    segments: int
    metadata: Mapping[str, str] = field(default_factory=lambda: EMPTY)


@dataclass(frozen=True, slots=True)
class PrefixInfo:
    """Keys below one more component: what a listing of one level shows of them."""

    bucket: str
    key: str
    """Ends in ``/``."""


def object_info(message: pb.Object, located: Located) -> ObjectInfo:
    """An object with its metadata decrypted."""
    metadata = open_metadata(
        message.encryption_parameters.cipher_suite, located, sealed_metadata_of(message)
    )
    return bare_info(message, located.bucket, located.key, metadata)


def bare_info(
    message: pb.Object, bucket: str, key: str, metadata: Mapping[str, str] = EMPTY
) -> ObjectInfo:
    """An object without a look at its metadata."""
    expires = message.expires_at if message.HasField("expires_at") else None
    return ObjectInfo(
        bucket=bucket,
        key=key,
        size=message.total_plain_size,
        etag=message.stream_id.hex(),
        version=message.version,
        created=as_datetime(message.created_at),
        expires=as_datetime(expires) if expires is not None else None,
        segments=message.segment_count,
        metadata=metadata,
    )


def sealed_metadata_of(message: pb.Object) -> SealedMetadata:
    return SealedMetadata(
        message.encrypted_metadata_nonce,
        message.encrypted_metadata,
        message.encrypted_metadata_encrypted_key,
    )


def parameters_of(message: pb.EncryptionParameters) -> EncryptionParameters:
    """The cipher of the object, whatever this client would choose for a new one."""
    return EncryptionParameters(message.cipher_suite, message.block_size)
