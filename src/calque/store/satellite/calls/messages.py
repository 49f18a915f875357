"""Between the rows of the metabase and the messages of the service, both ways."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from google.protobuf.timestamp_pb2 import Timestamp

from calque.errors import InvalidInput
from calque.store.metabase.accounts.buckets import BucketRecord
from calque.store.metabase.accounts.nodes import NodeRecord, Nodes
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.conditions import Conditions
from calque.store.metabase.model.records import (
    NO_METADATA,
    Encryption,
    ObjectLocation,
    ObjectRecord,
    Origin,
    Position,
    Redundancy,
    SegmentKey,
    SegmentRecord,
    WrappedMetadata,
)
from calque.store.metabase.objects.begin_object import ZOMBIE_AFTER_US, BeginObject
from calque.store.metainfo.pb import metainfo_pb2 as pb

MAX_TIMESTAMP_SECONDS = 253_402_300_799  # the end of the year 9999
_CIPHERS = frozenset(pb.CipherSuite.values()) - {pb.CIPHER_UNSPECIFIED}


def timestamp(at_us: int | None) -> Timestamp | None:
    """A time of the metabase as a message."""
    if at_us is None:
        return None
    return Timestamp(seconds=at_us // 1_000_000, nanos=at_us % 1_000_000 * 1000)


def microseconds(value: Timestamp, what: str) -> int:
    """A time out of a message, or ``InvalidInput``."""
    if not (0 <= value.seconds <= MAX_TIMESTAMP_SECONDS and 0 <= value.nanos < 1_000_000_000):
        raise InvalidInput(f"{what} is not a time between 1970 and 9999")
    return value.seconds * 1_000_000 + value.nanos // 1000


def to_begin(
    location: ObjectLocation,
    request: pb.ObjectBeginRequest | pb.ObjectPutInlineRequest | pb.SegmentBeginRequest,
    metadata: WrappedMetadata = NO_METADATA,
    zombie_after_us: int = ZOMBIE_AFTER_US,
) -> BeginObject:
    """The object that a request begins, checked: where it is to be, its cipher and its expiry."""
    expires_at = None
    if request.HasField("expires_at"):
        expires_at = microseconds(request.expires_at, "expires_at")
    encryption = to_encryption(request.encryption_parameters)
    return BeginObject(location, encryption, expires_at, metadata, zombie_after_us)


def bucket(record: BucketRecord) -> pb.Bucket:
    """A bucket as a message."""
    return pb.Bucket(
        name=record.name,
        created_at=timestamp(record.created_at),
        placement=record.placement,
    )


def object_(record: ObjectRecord, *, upload_id: bytes = b"") -> pb.Object:
    """An object as a message."""
    return pb.Object(
        bucket=record.bucket_name,
        encrypted_object_key=record.object_key,
        version=record.version,
        stream_id=record.stream_id,
        status=cast(pb.ObjectStatus, record.status),
        created_at=timestamp(record.created_at),
        expires_at=timestamp(record.expires_at),
        segment_count=record.segment_count,
        total_plain_size=record.total_plain_size,
        total_encrypted_size=record.total_encrypted_size,
        fixed_segment_size=record.fixed_segment_size,
        encryption_parameters=encryption(record),
        encrypted_metadata_nonce=record.encrypted_metadata_nonce or b"",
        encrypted_metadata=record.encrypted_metadata or b"",
        encrypted_metadata_encrypted_key=record.encrypted_metadata_encrypted_key or b"",
        zombie_deletion_deadline=timestamp(record.zombie_deletion_deadline),
        upload_id=upload_id,
    )


def encryption(record: ObjectRecord) -> pb.EncryptionParameters:
    """The cipher and block size of an object as a message."""
    cipher, block_size = Encryption.decode(record.encryption)
    return pb.EncryptionParameters(cipher_suite=cast(pb.CipherSuite, cipher), block_size=block_size)


def redundancy(scheme: Redundancy) -> pb.RedundancyScheme:
    """A redundancy scheme as a message."""
    return pb.RedundancyScheme(**scheme._asdict())


def to_redundancy(message: pb.RedundancyScheme) -> Redundancy:
    """A redundancy scheme out of a message."""
    return Redundancy(
        message.share_size, message.required, message.repair, message.success, message.total
    )


def node(record: NodeRecord) -> pb.Node:
    """A node as a message."""
    return pb.Node(id=record.node_id, address=record.address, placement=record.placement)


def segments(
    records: Iterable[SegmentRecord], nodes: Nodes
) -> tuple[list[pb.Segment], list[pb.Node]]:
    """Segments as messages, and every node that their pieces name."""
    named: dict[int, NodeRecord] = {}
    messages: list[pb.Segment] = []
    for record in records:
        placed = nodes.unpack(record.remote_alias_pieces) if record.remote_alias_pieces else []
        named.update((each.alias, each) for _, each in placed)
        messages.append(_segment(record, placed))
    return messages, [node(each) for each in named.values()]


def _segment(record: SegmentRecord, placed: list[tuple[int, NodeRecord]]) -> pb.Segment:
    return pb.Segment(
        position=position(record.position),
        created_at=timestamp(record.created_at),
        repaired_at=timestamp(record.repaired_at),
        expires_at=timestamp(record.expires_at),
        root_piece_id=record.root_piece_id,
        encrypted_key_nonce=record.encrypted_key_nonce,
        encrypted_key=record.encrypted_key,
        encrypted_size=record.encrypted_size,
        plain_size=record.plain_size,
        plain_offset=record.plain_offset,
        encrypted_etag=record.encrypted_etag or b"",
        redundancy=redundancy(Redundancy.decode(record.redundancy)) if placed else None,
        inline_data=record.inline_data or b"",
        inline=record.inline_data is not None,
        pieces=[pb.Piece(number=number, node_id=each.node_id) for number, each in placed],
        placement=record.placement,
        origin=_origin(record.origin) if record.origin else None,
    )


def _origin(origin: Origin) -> pb.SegmentOrigin:
    return pb.SegmentOrigin(
        position=position(origin.position),
        skip=origin.skip,
        plain_size=origin.plain_size,
        encrypted_size=origin.encrypted_size,
    )


def position(number: int) -> pb.SegmentPosition:
    """A position as a message."""
    return pb.SegmentPosition(part_number=number >> 32, index=number & 0xFFFFFFFF)


def to_position(message: pb.SegmentPosition) -> Position:
    """A position out of a message, checked."""
    return Position(message.part_number, message.index).check()


def segment_keys(keys: Iterable[SegmentKey]) -> list[pb.EncryptedKeyAndNonce]:
    """Wrapped keys as messages."""
    return [
        pb.EncryptedKeyAndNonce(
            position=position(each.position),
            encrypted_key_nonce=each.nonce,
            encrypted_key=each.key,
        )
        for each in keys
    ]


def to_segment_keys(messages: Sequence[pb.EncryptedKeyAndNonce]) -> list[SegmentKey]:
    """Wrapped keys out of messages; sizes and order are checked where they are packed."""
    # Before anything is made of them: a message has room for millions of empty ones.
    verify.key_count(len(messages))
    return [
        SegmentKey(
            to_position(each.position).encode(), each.encrypted_key_nonce, each.encrypted_key
        )
        for each in messages
    ]


def to_encryption(message: pb.EncryptionParameters) -> Encryption:
    """Encryption parameters out of a message; only known ciphers pass."""
    if message.cipher_suite not in _CIPHERS:
        raise InvalidInput("the cipher suite is missing or unknown")
    if message.block_size <= 0:
        raise InvalidInput("the block size must be positive")
    return Encryption(message.cipher_suite, message.block_size)


def to_metadata(nonce: bytes, data: bytes, key: bytes) -> WrappedMetadata:
    """Metadata out of message fields: empty bytes mean absent."""
    return WrappedMetadata(nonce or None, data or None, key or None)


def to_conditions(message: pb.CopyConditions) -> Conditions:
    """The conditions of a copy or move."""
    since = None
    if message.HasField("source_if_unmodified_since"):
        since = microseconds(message.source_if_unmodified_since, "source_if_unmodified_since")
    return Conditions(
        if_not_exists=message.if_not_exists,
        if_match=message.if_match_stream_id or None,
        source_if_match=message.source_if_match_stream_id or None,
        source_if_unmodified_since=since,
    )
