import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CipherSuite(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CIPHER_UNSPECIFIED: _ClassVar[CipherSuite]
    CIPHER_NULL: _ClassVar[CipherSuite]
    CIPHER_AES_256_GCM: _ClassVar[CipherSuite]
    CIPHER_CHACHA20_POLY1305: _ClassVar[CipherSuite]

class ObjectStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STATUS_UNSPECIFIED: _ClassVar[ObjectStatus]
    STATUS_PENDING: _ClassVar[ObjectStatus]
    STATUS_COMMITTED: _ClassVar[ObjectStatus]
CIPHER_UNSPECIFIED: CipherSuite
CIPHER_NULL: CipherSuite
CIPHER_AES_256_GCM: CipherSuite
CIPHER_CHACHA20_POLY1305: CipherSuite
STATUS_UNSPECIFIED: ObjectStatus
STATUS_PENDING: ObjectStatus
STATUS_COMMITTED: ObjectStatus

class RequestHeader(_message.Message):
    __slots__ = ("api_key",)
    API_KEY_FIELD_NUMBER: _ClassVar[int]
    api_key: bytes
    def __init__(self, api_key: _Optional[bytes] = ...) -> None: ...

class EncryptionParameters(_message.Message):
    __slots__ = ("cipher_suite", "block_size")
    CIPHER_SUITE_FIELD_NUMBER: _ClassVar[int]
    BLOCK_SIZE_FIELD_NUMBER: _ClassVar[int]
    cipher_suite: CipherSuite
    block_size: int
    def __init__(self, cipher_suite: _Optional[_Union[CipherSuite, str]] = ..., block_size: _Optional[int] = ...) -> None: ...

class RedundancyScheme(_message.Message):
    __slots__ = ("share_size", "required", "repair", "success", "total")
    SHARE_SIZE_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_FIELD_NUMBER: _ClassVar[int]
    REPAIR_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    share_size: int
    required: int
    repair: int
    success: int
    total: int
    def __init__(self, share_size: _Optional[int] = ..., required: _Optional[int] = ..., repair: _Optional[int] = ..., success: _Optional[int] = ..., total: _Optional[int] = ...) -> None: ...

class SegmentPosition(_message.Message):
    __slots__ = ("part_number", "index")
    PART_NUMBER_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    part_number: int
    index: int
    def __init__(self, part_number: _Optional[int] = ..., index: _Optional[int] = ...) -> None: ...

class Node(_message.Message):
    __slots__ = ("id", "address", "placement")
    ID_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_FIELD_NUMBER: _ClassVar[int]
    id: bytes
    address: str
    placement: int
    def __init__(self, id: _Optional[bytes] = ..., address: _Optional[str] = ..., placement: _Optional[int] = ...) -> None: ...

class Piece(_message.Message):
    __slots__ = ("number", "node_id")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    number: int
    node_id: bytes
    def __init__(self, number: _Optional[int] = ..., node_id: _Optional[bytes] = ...) -> None: ...

class EncryptedKeyAndNonce(_message.Message):
    __slots__ = ("position", "encrypted_key_nonce", "encrypted_key")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_KEY_NONCE_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_KEY_FIELD_NUMBER: _ClassVar[int]
    position: SegmentPosition
    encrypted_key_nonce: bytes
    encrypted_key: bytes
    def __init__(self, position: _Optional[_Union[SegmentPosition, _Mapping]] = ..., encrypted_key_nonce: _Optional[bytes] = ..., encrypted_key: _Optional[bytes] = ...) -> None: ...

class Bucket(_message.Message):
    __slots__ = ("name", "created_at", "placement")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_FIELD_NUMBER: _ClassVar[int]
    name: str
    created_at: _timestamp_pb2.Timestamp
    placement: int
    def __init__(self, name: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., placement: _Optional[int] = ...) -> None: ...

class Object(_message.Message):
    __slots__ = ("bucket", "encrypted_object_key", "version", "stream_id", "status", "created_at", "expires_at", "segment_count", "total_plain_size", "total_encrypted_size", "fixed_segment_size", "encryption_parameters", "encrypted_metadata_nonce", "encrypted_metadata", "encrypted_metadata_encrypted_key", "zombie_deletion_deadline", "upload_id")
    BUCKET_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_OBJECT_KEY_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    TOTAL_PLAIN_SIZE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_ENCRYPTED_SIZE_FIELD_NUMBER: _ClassVar[int]
    FIXED_SEGMENT_SIZE_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTION_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_METADATA_NONCE_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_METADATA_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_METADATA_ENCRYPTED_KEY_FIELD_NUMBER: _ClassVar[int]
    ZOMBIE_DELETION_DEADLINE_FIELD_NUMBER: _ClassVar[int]
    UPLOAD_ID_FIELD_NUMBER: _ClassVar[int]
    bucket: str
    encrypted_object_key: bytes
    version: int
    stream_id: bytes
    status: ObjectStatus
    created_at: _timestamp_pb2.Timestamp
    expires_at: _timestamp_pb2.Timestamp
    segment_count: int
    total_plain_size: int
    total_encrypted_size: int
    fixed_segment_size: int
    encryption_parameters: EncryptionParameters
    encrypted_metadata_nonce: bytes
    encrypted_metadata: bytes
    encrypted_metadata_encrypted_key: bytes
    zombie_deletion_deadline: _timestamp_pb2.Timestamp
    upload_id: bytes
    def __init__(self, bucket: _Optional[str] = ..., encrypted_object_key: _Optional[bytes] = ..., version: _Optional[int] = ..., stream_id: _Optional[bytes] = ..., status: _Optional[_Union[ObjectStatus, str]] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., segment_count: _Optional[int] = ..., total_plain_size: _Optional[int] = ..., total_encrypted_size: _Optional[int] = ..., fixed_segment_size: _Optional[int] = ..., encryption_parameters: _Optional[_Union[EncryptionParameters, _Mapping]] = ..., encrypted_metadata_nonce: _Optional[bytes] = ..., encrypted_metadata: _Optional[bytes] = ..., encrypted_metadata_encrypted_key: _Optional[bytes] = ..., zombie_deletion_deadline: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., upload_id: _Optional[bytes] = ...) -> None: ...

class Segment(_message.Message):
    __slots__ = ("position", "created_at", "repaired_at", "expires_at", "root_piece_id", "encrypted_key_nonce", "encrypted_key", "encrypted_size", "plain_size", "plain_offset", "encrypted_etag", "redundancy", "inline_data", "inline", "pieces", "placement", "piece_tokens", "origin")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    REPAIRED_AT_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    ROOT_PIECE_ID_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_KEY_NONCE_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_KEY_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_SIZE_FIELD_NUMBER: _ClassVar[int]
    PLAIN_SIZE_FIELD_NUMBER: _ClassVar[int]
    PLAIN_OFFSET_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_ETAG_FIELD_NUMBER: _ClassVar[int]
    REDUNDANCY_FIELD_NUMBER: _ClassVar[int]
    INLINE_DATA_FIELD_NUMBER: _ClassVar[int]
    INLINE_FIELD_NUMBER: _ClassVar[int]
    PIECES_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_FIELD_NUMBER: _ClassVar[int]
    PIECE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    position: SegmentPosition
    created_at: _timestamp_pb2.Timestamp
    repaired_at: _timestamp_pb2.Timestamp
    expires_at: _timestamp_pb2.Timestamp
    root_piece_id: bytes
    encrypted_key_nonce: bytes
    encrypted_key: bytes
    encrypted_size: int
    plain_size: int
    plain_offset: int
    encrypted_etag: bytes
    redundancy: RedundancyScheme
    inline_data: bytes
    inline: bool
    pieces: _containers.RepeatedCompositeFieldContainer[Piece]
    placement: int
    piece_tokens: _containers.RepeatedScalarFieldContainer[bytes]
    origin: SegmentOrigin
    def __init__(self, position: _Optional[_Union[SegmentPosition, _Mapping]] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., repaired_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., root_piece_id: _Optional[bytes] = ..., encrypted_key_nonce: _Optional[bytes] = ..., encrypted_key: _Optional[bytes] = ..., encrypted_size: _Optional[int] = ..., plain_size: _Optional[int] = ..., plain_offset: _Optional[int] = ..., encrypted_etag: _Optional[bytes] = ..., redundancy: _Optional[_Union[RedundancyScheme, _Mapping]] = ..., inline_data: _Optional[bytes] = ..., inline: _Optional[bool] = ..., pieces: _Optional[_Iterable[_Union[Piece, _Mapping]]] = ..., placement: _Optional[int] = ..., piece_tokens: _Optional[_Iterable[bytes]] = ..., origin: _Optional[_Union[SegmentOrigin, _Mapping]] = ...) -> None: ...

class SegmentOrigin(_message.Message):
    __slots__ = ("position", "skip", "plain_size", "encrypted_size")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    SKIP_FIELD_NUMBER: _ClassVar[int]
    PLAIN_SIZE_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_SIZE_FIELD_NUMBER: _ClassVar[int]
    position: SegmentPosition
    skip: int
    plain_size: int
    encrypted_size: int
    def __init__(self, position: _Optional[_Union[SegmentPosition, _Mapping]] = ..., skip: _Optional[int] = ..., plain_size: _Optional[int] = ..., encrypted_size: _Optional[int] = ...) -> None: ...

class ProjectGetRequest(_message.Message):
    __slots__ = ("header",)
    HEADER_FIELD_NUMBER: _ClassVar[int]
    header: RequestHeader
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping]] = ...) -> None: ...

class ProjectGetResponse(_message.Message):
    __slots__ = ("project_id", "salt", "redundancy", "max_segment_size", "max_inline_size", "max_metadata_size", "max_keys_per_request")
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    SALT_FIELD_NUMBER: _ClassVar[int]
    REDUNDANCY_FIELD_NUMBER: _ClassVar[int]
    MAX_SEGMENT_SIZE_FIELD_NUMBER: _ClassVar[int]
    MAX_INLINE_SIZE_FIELD_NUMBER: _ClassVar[int]
    MAX_METADATA_SIZE_FIELD_NUMBER: _ClassVar[int]
    MAX_KEYS_PER_REQUEST_FIELD_NUMBER: _ClassVar[int]
    project_id: bytes
    salt: bytes
    redundancy: RedundancyScheme
    max_segment_size: int
    max_inline_size: int
    max_metadata_size: int
    max_keys_per_request: int
    def __init__(self, project_id: _Optional[bytes] = ..., salt: _Optional[bytes] = ..., redundancy: _Optional[_Union[RedundancyScheme, _Mapping]] = ..., max_segment_size: _Optional[int] = ..., max_inline_size: _Optional[int] = ..., max_metadata_size: _Optional[int] = ..., max_keys_per_request: _Optional[int] = ...) -> None: ...

class BucketCreateRequest(_message.Message):
    __slots__ = ("header", "name", "placement")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_FIELD_NUMBER: _ClassVar[int]
    header: RequestHeader
    name: str
    placement: int
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping]] = ..., name: _Optional[str] = ..., placement: _Optional[int] = ...) -> None: ...

class BucketCreateResponse(_message.Message):
    __slots__ = ("bucket",)
    BUCKET_FIELD_NUMBER: _ClassVar[int]
    bucket: Bucket
    def __init__(self, bucket: _Optional[_Union[Bucket, _Mapping]] = ...) -> None: ...

class BucketGetRequest(_message.Message):
    __slots__ = ("header", "name")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    header: RequestHeader
    name: str
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping]] = ..., name: _Optional[str] = ...) -> None: ...

class BucketGetResponse(_message.Message):
    __slots__ = ("bucket",)
    BUCKET_FIELD_NUMBER: _ClassVar[int]
    bucket: Bucket
    def __init__(self, bucket: _Optional[_Union[Bucket, _Mapping]] = ...) -> None: ...

class BucketDeleteRequest(_message.Message):
    __slots__ = ("header", "name", "delete_all")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DELETE_ALL_FIELD_NUMBER: _ClassVar[int]
    header: RequestHeader
    name: str
    delete_all: bool
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping]] = ..., name: _Optional[str] = ..., delete_all: _Optional[bool] = ...) -> None: ...

class BucketDeleteResponse(_message.Message):
    __slots__ = ("bucket", "deleted_objects")
    BUCKET_FIELD_NUMBER: _ClassVar[int]
    DELETED_OBJECTS_FIELD_NUMBER: _ClassVar[int]
    bucket: Bucket
    deleted_objects: int
    def __init__(self, bucket: _Optional[_Union[Bucket, _Mapping]] = ..., deleted_objects: _Optional[int] = ...) -> None: ...

class BucketListRequest(_message.Message):
    __slots__ = ("header", "cursor", "limit")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    header: RequestHeader
    cursor: str
    limit: int
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping]] = ..., cursor: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class BucketListResponse(_message.Message):
    __slots__ = ("items", "more")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[Bucket]
    more: bool
    def __init__(self, items: _Optional[_Iterable[_Union[Bucket, _Mapping]]] = ..., more: _Optional[bool] = ...) -> None: ...

class ObjectBeginRequest(_message.Message):
    __slots__ = ("header", "bucket", "encrypted_object_key", "expires_at", "encryption_parameters", "encrypted_metadata_nonce", "encrypted_metadata", "encrypted_metadata_encrypted_key")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    BUCKET_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_OBJECT_KEY_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTION_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_METADATA_NONCE_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_METADATA_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_METADATA_ENCRYPTED_KEY_FIELD_NUMBER: _ClassVar[int]
    header: RequestHeader
    bucket: str
    encrypted_object_key: bytes
    expires_at: _timestamp_pb2.Timestamp
    encryption_parameters: EncryptionParameters
    encrypted_metadata_nonce: bytes
    encrypted_metadata: bytes
    encrypted_metadata_encrypted_key: bytes
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping]] = ..., bucket: _Optional[str] = ..., encrypted_object_key: _Optional[bytes] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., encryption_parameters: _Optional[_Union[EncryptionParameters, _Mapping]] = ..., encrypted_metadata_nonce: _Optional[bytes] = ..., encrypted_metadata: _Optional[bytes] = ..., encrypted_metadata_encrypted_key: _Optional[bytes] = ...) -> None: ...

class ObjectBeginResponse(_message.Message):
    __slots__ = ("upload_id", "stream_id", "redundancy")
    UPLOAD_ID_FIELD_NUMBER: _ClassVar[int]
    STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    REDUNDANCY_FIELD_NUMBER: _ClassVar[int]
    upload_id: bytes
    stream_id: bytes
    redundancy: RedundancyScheme
    def __init__(self, upload_id: _Optional[bytes] = ..., stream_id: _Optional[bytes] = ..., redundancy: _Optional[_Union[RedundancyScheme, _Mapping]] = ...) -> None: ...

class ObjectCommitRequest(_message.Message):
    __slots__ = ("header", "upload_id", "override_metadata", "encrypted_metadata_nonce", "encrypted_metadata", "encrypted_metadata_encrypted_key", "if_not_exists", "if_match_stream_id", "only_parts", "part_numbers", "joined_keys")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    UPLOAD_ID_FIELD_NUMBER: _ClassVar[int]
    OVERRIDE_METADATA_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_METADATA_NONCE_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_METADATA_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_METADATA_ENCRYPTED_KEY_FIELD_NUMBER: _ClassVar[int]
    IF_NOT_EXISTS_FIELD_NUMBER: _ClassVar[int]
    IF_MATCH_STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    ONLY_PARTS_FIELD_NUMBER: _ClassVar[int]
    PART_NUMBERS_FIELD_NUMBER: _ClassVar[int]
    JOINED_KEYS_FIELD_NUMBER: _ClassVar[int]
    header: RequestHeader
    upload_id: bytes
    override_metadata: bool
    encrypted_metadata_nonce: bytes
    encrypted_metadata: bytes
    encrypted_metadata_encrypted_key: bytes
    if_not_exists: bool
    if_match_stream_id: bytes
    only_parts: bool
    part_numbers: _containers.RepeatedScalarFieldContainer[int]
    joined_keys: _containers.RepeatedCompositeFieldContainer[EncryptedKeyAndNonce]
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping]] = ..., upload_id: _Optional[bytes] = ..., override_metadata: _Optional[bool] = ..., encrypted_metadata_nonce: _Optional[bytes] = ..., encrypted_metadata: _Optional[bytes] = ..., encrypted_metadata_encrypted_key: _Optional[bytes] = ..., if_not_exists: _Optional[bool] = ..., if_match_stream_id: _Optional[bytes] = ..., only_parts: _Optional[bool] = ..., part_numbers: _Optional[_Iterable[int]] = ..., joined_keys: _Optional[_Iterable[_Union[EncryptedKeyAndNonce, _Mapping]]] = ...) -> None: ...

class ObjectCommitResponse(_message.Message):
    __slots__ = ("object",)
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    object: Object
    def __init__(self, object: _Optional[_Union[Object, _Mapping]] = ...) -> None: ...

class ObjectAbortRequest(_message.Message):
    __slots__ = ("header", "upload_id")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    UPLOAD_ID_FIELD_NUMBER: _ClassVar[int]
    header: RequestHeader
    upload_id: bytes
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping]] = ..., upload_id: _Optional[bytes] = ...) -> None: ...

class ObjectAbortResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ObjectGetRequest(_message.Message):
    __slots__ = ("header", "bucket", "encrypted_object_key")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    BUCKET_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_OBJECT_KEY_FIELD_NUMBER: _ClassVar[int]
    header: RequestHeader
    bucket: str
    encrypted_object_key: bytes
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping]] = ..., bucket: _Optional[str] = ..., encrypted_object_key: _Optional[bytes] = ...) -> None: ...

class ObjectGetResponse(_message.Message):
    __slots__ = ("object",)
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    object: Object
    def __init__(self, object: _Optional[_Union[Object, _Mapping]] = ...) -> None: ...

class ObjectListRequest(_message.Message):
    __slots__ = ("header", "bucket", "encrypted_prefix", "encrypted_cursor", "limit", "recursive", "status", "version_cursor", "delimiter", "known_mark")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    BUCKET_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_PREFIX_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_CURSOR_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    RECURSIVE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    VERSION_CURSOR_FIELD_NUMBER: _ClassVar[int]
    DELIMITER_FIELD_NUMBER: _ClassVar[int]
    KNOWN_MARK_FIELD_NUMBER: _ClassVar[int]
    header: RequestHeader
    bucket: str
    encrypted_prefix: bytes
    encrypted_cursor: bytes
    limit: int
    recursive: bool
    status: ObjectStatus
    version_cursor: int
    delimiter: bytes
    known_mark: bytes
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping]] = ..., bucket: _Optional[str] = ..., encrypted_prefix: _Optional[bytes] = ..., encrypted_cursor: _Optional[bytes] = ..., limit: _Optional[int] = ..., recursive: _Optional[bool] = ..., status: _Optional[_Union[ObjectStatus, str]] = ..., version_cursor: _Optional[int] = ..., delimiter: _Optional[bytes] = ..., known_mark: _Optional[bytes] = ...) -> None: ...

class ObjectListItem(_message.Message):
    __slots__ = ("encrypted_object_key", "is_prefix", "object")
    ENCRYPTED_OBJECT_KEY_FIELD_NUMBER: _ClassVar[int]
    IS_PREFIX_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    encrypted_object_key: bytes
    is_prefix: bool
    object: Object
    def __init__(self, encrypted_object_key: _Optional[bytes] = ..., is_prefix: _Optional[bool] = ..., object: _Optional[_Union[Object, _Mapping]] = ...) -> None: ...

class ObjectListResponse(_message.Message):
    __slots__ = ("items", "more", "mark", "unchanged")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    MARK_FIELD_NUMBER: _ClassVar[int]
    UNCHANGED_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[ObjectListItem]
    more: bool
    mark: bytes
    unchanged: bool
    def __init__(self, items: _Optional[_Iterable[_Union[ObjectListItem, _Mapping]]] = ..., more: _Optional[bool] = ..., mark: _Optional[bytes] = ..., unchanged: _Optional[bool] = ...) -> None: ...

class ObjectDeleteRequest(_message.Message):
    __slots__ = ("header", "bucket", "encrypted_object_key", "if_match_stream_id")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    BUCKET_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_OBJECT_KEY_FIELD_NUMBER: _ClassVar[int]
    IF_MATCH_STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    header: RequestHeader
    bucket: str
    encrypted_object_key: bytes
    if_match_stream_id: bytes
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping]] = ..., bucket: _Optional[str] = ..., encrypted_object_key: _Optional[bytes] = ..., if_match_stream_id: _Optional[bytes] = ...) -> None: ...

class ObjectDeleteResponse(_message.Message):
    __slots__ = ("deleted", "object")
    DELETED_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    deleted: bool
    object: Object
    def __init__(self, deleted: _Optional[bool] = ..., object: _Optional[_Union[Object, _Mapping]] = ...) -> None: ...

class ObjectsDeleteRequest(_message.Message):
    __slots__ = ("header", "bucket", "items")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    BUCKET_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    header: RequestHeader
    bucket: str
    items: _containers.RepeatedCompositeFieldContainer[ObjectToDelete]
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping]] = ..., bucket: _Optional[str] = ..., items: _Optional[_Iterable[_Union[ObjectToDelete, _Mapping]]] = ...) -> None: ...

class ObjectToDelete(_message.Message):
    __slots__ = ("encrypted_object_key", "if_match_stream_id")
    ENCRYPTED_OBJECT_KEY_FIELD_NUMBER: _ClassVar[int]
    IF_MATCH_STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    encrypted_object_key: bytes
    if_match_stream_id: bytes
    def __init__(self, encrypted_object_key: _Optional[bytes] = ..., if_match_stream_id: _Optional[bytes] = ...) -> None: ...

class ObjectsDeleteResponse(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[ObjectDeleteAnswer]
    def __init__(self, items: _Optional[_Iterable[_Union[ObjectDeleteAnswer, _Mapping]]] = ...) -> None: ...

class ObjectDeleteAnswer(_message.Message):
    __slots__ = ("deleted", "error_kind", "error_message")
    DELETED_FIELD_NUMBER: _ClassVar[int]
    ERROR_KIND_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    deleted: bool
    error_kind: str
    error_message: str
    def __init__(self, deleted: _Optional[bool] = ..., error_kind: _Optional[str] = ..., error_message: _Optional[str] = ...) -> None: ...

class ObjectPutInlineRequest(_message.Message):
    __slots__ = ("header", "bucket", "encrypted_object_key", "request_id", "expires_at", "encryption_parameters", "encrypted_metadata_nonce", "encrypted_metadata", "encrypted_metadata_encrypted_key", "encrypted_key_nonce", "encrypted_key", "inline_data", "plain_size", "if_not_exists", "if_match_stream_id")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    BUCKET_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_OBJECT_KEY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTION_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_METADATA_NONCE_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_METADATA_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_METADATA_ENCRYPTED_KEY_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_KEY_NONCE_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_KEY_FIELD_NUMBER: _ClassVar[int]
    INLINE_DATA_FIELD_NUMBER: _ClassVar[int]
    PLAIN_SIZE_FIELD_NUMBER: _ClassVar[int]
    IF_NOT_EXISTS_FIELD_NUMBER: _ClassVar[int]
    IF_MATCH_STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    header: RequestHeader
    bucket: str
    encrypted_object_key: bytes
    request_id: bytes
    expires_at: _timestamp_pb2.Timestamp
    encryption_parameters: EncryptionParameters
    encrypted_metadata_nonce: bytes
    encrypted_metadata: bytes
    encrypted_metadata_encrypted_key: bytes
    encrypted_key_nonce: bytes
    encrypted_key: bytes
    inline_data: bytes
    plain_size: int
    if_not_exists: bool
    if_match_stream_id: bytes
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping]] = ..., bucket: _Optional[str] = ..., encrypted_object_key: _Optional[bytes] = ..., request_id: _Optional[bytes] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., encryption_parameters: _Optional[_Union[EncryptionParameters, _Mapping]] = ..., encrypted_metadata_nonce: _Optional[bytes] = ..., encrypted_metadata: _Optional[bytes] = ..., encrypted_metadata_encrypted_key: _Optional[bytes] = ..., encrypted_key_nonce: _Optional[bytes] = ..., encrypted_key: _Optional[bytes] = ..., inline_data: _Optional[bytes] = ..., plain_size: _Optional[int] = ..., if_not_exists: _Optional[bool] = ..., if_match_stream_id: _Optional[bytes] = ...) -> None: ...

class ObjectPutInlineResponse(_message.Message):
    __slots__ = ("object",)
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    object: Object
    def __init__(self, object: _Optional[_Union[Object, _Mapping]] = ...) -> None: ...

class ObjectPutRequest(_message.Message):
    __slots__ = ("header", "segment", "encrypted_metadata_nonce", "encrypted_metadata", "encrypted_metadata_encrypted_key", "if_not_exists", "if_match_stream_id")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_METADATA_NONCE_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_METADATA_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_METADATA_ENCRYPTED_KEY_FIELD_NUMBER: _ClassVar[int]
    IF_NOT_EXISTS_FIELD_NUMBER: _ClassVar[int]
    IF_MATCH_STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    header: RequestHeader
    segment: SegmentCommitRequest
    encrypted_metadata_nonce: bytes
    encrypted_metadata: bytes
    encrypted_metadata_encrypted_key: bytes
    if_not_exists: bool
    if_match_stream_id: bytes
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping]] = ..., segment: _Optional[_Union[SegmentCommitRequest, _Mapping]] = ..., encrypted_metadata_nonce: _Optional[bytes] = ..., encrypted_metadata: _Optional[bytes] = ..., encrypted_metadata_encrypted_key: _Optional[bytes] = ..., if_not_exists: _Optional[bool] = ..., if_match_stream_id: _Optional[bytes] = ...) -> None: ...

class ObjectPutResponse(_message.Message):
    __slots__ = ("object",)
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    object: Object
    def __init__(self, object: _Optional[_Union[Object, _Mapping]] = ...) -> None: ...

class ObjectUpdateMetadataRequest(_message.Message):
    __slots__ = ("header", "bucket", "encrypted_object_key", "stream_id", "encrypted_metadata_nonce", "encrypted_metadata", "encrypted_metadata_encrypted_key")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    BUCKET_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_OBJECT_KEY_FIELD_NUMBER: _ClassVar[int]
    STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_METADATA_NONCE_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_METADATA_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_METADATA_ENCRYPTED_KEY_FIELD_NUMBER: _ClassVar[int]
    header: RequestHeader
    bucket: str
    encrypted_object_key: bytes
    stream_id: bytes
    encrypted_metadata_nonce: bytes
    encrypted_metadata: bytes
    encrypted_metadata_encrypted_key: bytes
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping]] = ..., bucket: _Optional[str] = ..., encrypted_object_key: _Optional[bytes] = ..., stream_id: _Optional[bytes] = ..., encrypted_metadata_nonce: _Optional[bytes] = ..., encrypted_metadata: _Optional[bytes] = ..., encrypted_metadata_encrypted_key: _Optional[bytes] = ...) -> None: ...

class ObjectUpdateMetadataResponse(_message.Message):
    __slots__ = ("object",)
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    object: Object
    def __init__(self, object: _Optional[_Union[Object, _Mapping]] = ...) -> None: ...

class SegmentBeginRequest(_message.Message):
    __slots__ = ("header", "upload_id", "position", "bucket", "encrypted_object_key", "expires_at", "encryption_parameters")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    UPLOAD_ID_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    BUCKET_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_OBJECT_KEY_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTION_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    header: RequestHeader
    upload_id: bytes
    position: SegmentPosition
    bucket: str
    encrypted_object_key: bytes
    expires_at: _timestamp_pb2.Timestamp
    encryption_parameters: EncryptionParameters
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping]] = ..., upload_id: _Optional[bytes] = ..., position: _Optional[_Union[SegmentPosition, _Mapping]] = ..., bucket: _Optional[str] = ..., encrypted_object_key: _Optional[bytes] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., encryption_parameters: _Optional[_Union[EncryptionParameters, _Mapping]] = ...) -> None: ...

class PieceLimit(_message.Message):
    __slots__ = ("number", "node", "token")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    number: int
    node: Node
    token: bytes
    def __init__(self, number: _Optional[int] = ..., node: _Optional[_Union[Node, _Mapping]] = ..., token: _Optional[bytes] = ...) -> None: ...

class SegmentBeginResponse(_message.Message):
    __slots__ = ("segment_id", "root_piece_id", "redundancy", "pieces", "placement", "spares")
    SEGMENT_ID_FIELD_NUMBER: _ClassVar[int]
    ROOT_PIECE_ID_FIELD_NUMBER: _ClassVar[int]
    REDUNDANCY_FIELD_NUMBER: _ClassVar[int]
    PIECES_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_FIELD_NUMBER: _ClassVar[int]
    SPARES_FIELD_NUMBER: _ClassVar[int]
    segment_id: bytes
    root_piece_id: bytes
    redundancy: RedundancyScheme
    pieces: _containers.RepeatedCompositeFieldContainer[PieceLimit]
    placement: int
    spares: _containers.RepeatedCompositeFieldContainer[PieceLimit]
    def __init__(self, segment_id: _Optional[bytes] = ..., root_piece_id: _Optional[bytes] = ..., redundancy: _Optional[_Union[RedundancyScheme, _Mapping]] = ..., pieces: _Optional[_Iterable[_Union[PieceLimit, _Mapping]]] = ..., placement: _Optional[int] = ..., spares: _Optional[_Iterable[_Union[PieceLimit, _Mapping]]] = ...) -> None: ...

class SegmentCommitRequest(_message.Message):
    __slots__ = ("header", "segment_id", "encrypted_key_nonce", "encrypted_key", "encrypted_size", "plain_size", "encrypted_etag", "pieces")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_ID_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_KEY_NONCE_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_KEY_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_SIZE_FIELD_NUMBER: _ClassVar[int]
    PLAIN_SIZE_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_ETAG_FIELD_NUMBER: _ClassVar[int]
    PIECES_FIELD_NUMBER: _ClassVar[int]
    header: RequestHeader
    segment_id: bytes
    encrypted_key_nonce: bytes
    encrypted_key: bytes
    encrypted_size: int
    plain_size: int
    encrypted_etag: bytes
    pieces: _containers.RepeatedCompositeFieldContainer[Piece]
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping]] = ..., segment_id: _Optional[bytes] = ..., encrypted_key_nonce: _Optional[bytes] = ..., encrypted_key: _Optional[bytes] = ..., encrypted_size: _Optional[int] = ..., plain_size: _Optional[int] = ..., encrypted_etag: _Optional[bytes] = ..., pieces: _Optional[_Iterable[_Union[Piece, _Mapping]]] = ...) -> None: ...

class SegmentCommitResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SegmentMakeInlineRequest(_message.Message):
    __slots__ = ("header", "upload_id", "position", "encrypted_key_nonce", "encrypted_key", "inline_data", "plain_size", "encrypted_etag")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    UPLOAD_ID_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_KEY_NONCE_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_KEY_FIELD_NUMBER: _ClassVar[int]
    INLINE_DATA_FIELD_NUMBER: _ClassVar[int]
    PLAIN_SIZE_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_ETAG_FIELD_NUMBER: _ClassVar[int]
    header: RequestHeader
    upload_id: bytes
    position: SegmentPosition
    encrypted_key_nonce: bytes
    encrypted_key: bytes
    inline_data: bytes
    plain_size: int
    encrypted_etag: bytes
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping]] = ..., upload_id: _Optional[bytes] = ..., position: _Optional[_Union[SegmentPosition, _Mapping]] = ..., encrypted_key_nonce: _Optional[bytes] = ..., encrypted_key: _Optional[bytes] = ..., inline_data: _Optional[bytes] = ..., plain_size: _Optional[int] = ..., encrypted_etag: _Optional[bytes] = ...) -> None: ...

class SegmentMakeInlineResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PartCopyRequest(_message.Message):
    __slots__ = ("header", "upload_id", "bucket", "encrypted_object_key", "stream_id", "slices")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    UPLOAD_ID_FIELD_NUMBER: _ClassVar[int]
    BUCKET_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_OBJECT_KEY_FIELD_NUMBER: _ClassVar[int]
    STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    SLICES_FIELD_NUMBER: _ClassVar[int]
    header: RequestHeader
    upload_id: bytes
    bucket: str
    encrypted_object_key: bytes
    stream_id: bytes
    slices: _containers.RepeatedCompositeFieldContainer[PartSlice]
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping]] = ..., upload_id: _Optional[bytes] = ..., bucket: _Optional[str] = ..., encrypted_object_key: _Optional[bytes] = ..., stream_id: _Optional[bytes] = ..., slices: _Optional[_Iterable[_Union[PartSlice, _Mapping]]] = ...) -> None: ...

class PartSlice(_message.Message):
    __slots__ = ("position", "source_position", "skip", "length", "encrypted_key_nonce", "encrypted_key", "encrypted_etag")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    SOURCE_POSITION_FIELD_NUMBER: _ClassVar[int]
    SKIP_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_KEY_NONCE_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_KEY_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_ETAG_FIELD_NUMBER: _ClassVar[int]
    position: SegmentPosition
    source_position: SegmentPosition
    skip: int
    length: int
    encrypted_key_nonce: bytes
    encrypted_key: bytes
    encrypted_etag: bytes
    def __init__(self, position: _Optional[_Union[SegmentPosition, _Mapping]] = ..., source_position: _Optional[_Union[SegmentPosition, _Mapping]] = ..., skip: _Optional[int] = ..., length: _Optional[int] = ..., encrypted_key_nonce: _Optional[bytes] = ..., encrypted_key: _Optional[bytes] = ..., encrypted_etag: _Optional[bytes] = ...) -> None: ...

class PartCopyResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SegmentListRequest(_message.Message):
    __slots__ = ("header", "bucket", "encrypted_object_key", "stream_id", "upload_id", "cursor", "limit", "range_start", "range_limit")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    BUCKET_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_OBJECT_KEY_FIELD_NUMBER: _ClassVar[int]
    STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    UPLOAD_ID_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    RANGE_START_FIELD_NUMBER: _ClassVar[int]
    RANGE_LIMIT_FIELD_NUMBER: _ClassVar[int]
    header: RequestHeader
    bucket: str
    encrypted_object_key: bytes
    stream_id: bytes
    upload_id: bytes
    cursor: SegmentPosition
    limit: int
    range_start: int
    range_limit: int
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping]] = ..., bucket: _Optional[str] = ..., encrypted_object_key: _Optional[bytes] = ..., stream_id: _Optional[bytes] = ..., upload_id: _Optional[bytes] = ..., cursor: _Optional[_Union[SegmentPosition, _Mapping]] = ..., limit: _Optional[int] = ..., range_start: _Optional[int] = ..., range_limit: _Optional[int] = ...) -> None: ...

class SegmentListResponse(_message.Message):
    __slots__ = ("object", "segments", "nodes", "more")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    object: Object
    segments: _containers.RepeatedCompositeFieldContainer[Segment]
    nodes: _containers.RepeatedCompositeFieldContainer[Node]
    more: bool
    def __init__(self, object: _Optional[_Union[Object, _Mapping]] = ..., segments: _Optional[_Iterable[_Union[Segment, _Mapping]]] = ..., nodes: _Optional[_Iterable[_Union[Node, _Mapping]]] = ..., more: _Optional[bool] = ...) -> None: ...

class ObjectBeginCopyRequest(_message.Message):
    __slots__ = ("header", "bucket", "encrypted_object_key", "new_bucket", "new_encrypted_object_key", "override_metadata", "operation_id", "cursor", "limit")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    BUCKET_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_OBJECT_KEY_FIELD_NUMBER: _ClassVar[int]
    NEW_BUCKET_FIELD_NUMBER: _ClassVar[int]
    NEW_ENCRYPTED_OBJECT_KEY_FIELD_NUMBER: _ClassVar[int]
    OVERRIDE_METADATA_FIELD_NUMBER: _ClassVar[int]
    OPERATION_ID_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    header: RequestHeader
    bucket: str
    encrypted_object_key: bytes
    new_bucket: str
    new_encrypted_object_key: bytes
    override_metadata: bool
    operation_id: bytes
    cursor: SegmentPosition
    limit: int
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping]] = ..., bucket: _Optional[str] = ..., encrypted_object_key: _Optional[bytes] = ..., new_bucket: _Optional[str] = ..., new_encrypted_object_key: _Optional[bytes] = ..., override_metadata: _Optional[bool] = ..., operation_id: _Optional[bytes] = ..., cursor: _Optional[_Union[SegmentPosition, _Mapping]] = ..., limit: _Optional[int] = ...) -> None: ...

class ObjectBeginCopyResponse(_message.Message):
    __slots__ = ("stream_id", "encrypted_metadata_key_nonce", "encrypted_metadata_key", "segment_keys", "encryption_parameters", "operation_id", "segment_count", "more", "operation_expires_at")
    STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_METADATA_KEY_NONCE_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_METADATA_KEY_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_KEYS_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTION_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    OPERATION_ID_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    OPERATION_EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    stream_id: bytes
    encrypted_metadata_key_nonce: bytes
    encrypted_metadata_key: bytes
    segment_keys: _containers.RepeatedCompositeFieldContainer[EncryptedKeyAndNonce]
    encryption_parameters: EncryptionParameters
    operation_id: bytes
    segment_count: int
    more: bool
    operation_expires_at: _timestamp_pb2.Timestamp
    def __init__(self, stream_id: _Optional[bytes] = ..., encrypted_metadata_key_nonce: _Optional[bytes] = ..., encrypted_metadata_key: _Optional[bytes] = ..., segment_keys: _Optional[_Iterable[_Union[EncryptedKeyAndNonce, _Mapping]]] = ..., encryption_parameters: _Optional[_Union[EncryptionParameters, _Mapping]] = ..., operation_id: _Optional[bytes] = ..., segment_count: _Optional[int] = ..., more: _Optional[bool] = ..., operation_expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class CopyConditions(_message.Message):
    __slots__ = ("if_not_exists", "if_match_stream_id", "source_if_match_stream_id", "source_if_unmodified_since")
    IF_NOT_EXISTS_FIELD_NUMBER: _ClassVar[int]
    IF_MATCH_STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    SOURCE_IF_MATCH_STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    SOURCE_IF_UNMODIFIED_SINCE_FIELD_NUMBER: _ClassVar[int]
    if_not_exists: bool
    if_match_stream_id: bytes
    source_if_match_stream_id: bytes
    source_if_unmodified_since: _timestamp_pb2.Timestamp
    def __init__(self, if_not_exists: _Optional[bool] = ..., if_match_stream_id: _Optional[bytes] = ..., source_if_match_stream_id: _Optional[bytes] = ..., source_if_unmodified_since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ObjectFinishCopyRequest(_message.Message):
    __slots__ = ("header", "operation_id", "stream_id", "new_bucket", "new_encrypted_object_key", "new_encrypted_metadata_key_nonce", "new_encrypted_metadata_key", "new_encrypted_metadata", "override_metadata", "new_segment_keys", "conditions", "partial")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    OPERATION_ID_FIELD_NUMBER: _ClassVar[int]
    STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    NEW_BUCKET_FIELD_NUMBER: _ClassVar[int]
    NEW_ENCRYPTED_OBJECT_KEY_FIELD_NUMBER: _ClassVar[int]
    NEW_ENCRYPTED_METADATA_KEY_NONCE_FIELD_NUMBER: _ClassVar[int]
    NEW_ENCRYPTED_METADATA_KEY_FIELD_NUMBER: _ClassVar[int]
    NEW_ENCRYPTED_METADATA_FIELD_NUMBER: _ClassVar[int]
    OVERRIDE_METADATA_FIELD_NUMBER: _ClassVar[int]
    NEW_SEGMENT_KEYS_FIELD_NUMBER: _ClassVar[int]
    CONDITIONS_FIELD_NUMBER: _ClassVar[int]
    PARTIAL_FIELD_NUMBER: _ClassVar[int]
    header: RequestHeader
    operation_id: bytes
    stream_id: bytes
    new_bucket: str
    new_encrypted_object_key: bytes
    new_encrypted_metadata_key_nonce: bytes
    new_encrypted_metadata_key: bytes
    new_encrypted_metadata: bytes
    override_metadata: bool
    new_segment_keys: _containers.RepeatedCompositeFieldContainer[EncryptedKeyAndNonce]
    conditions: CopyConditions
    partial: bool
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping]] = ..., operation_id: _Optional[bytes] = ..., stream_id: _Optional[bytes] = ..., new_bucket: _Optional[str] = ..., new_encrypted_object_key: _Optional[bytes] = ..., new_encrypted_metadata_key_nonce: _Optional[bytes] = ..., new_encrypted_metadata_key: _Optional[bytes] = ..., new_encrypted_metadata: _Optional[bytes] = ..., override_metadata: _Optional[bool] = ..., new_segment_keys: _Optional[_Iterable[_Union[EncryptedKeyAndNonce, _Mapping]]] = ..., conditions: _Optional[_Union[CopyConditions, _Mapping]] = ..., partial: _Optional[bool] = ...) -> None: ...

class ObjectFinishCopyResponse(_message.Message):
    __slots__ = ("object", "keys_received")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    KEYS_RECEIVED_FIELD_NUMBER: _ClassVar[int]
    object: Object
    keys_received: int
    def __init__(self, object: _Optional[_Union[Object, _Mapping]] = ..., keys_received: _Optional[int] = ...) -> None: ...

class ObjectBeginMoveRequest(_message.Message):
    __slots__ = ("header", "bucket", "encrypted_object_key", "new_bucket", "new_encrypted_object_key", "operation_id", "cursor", "limit")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    BUCKET_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_OBJECT_KEY_FIELD_NUMBER: _ClassVar[int]
    NEW_BUCKET_FIELD_NUMBER: _ClassVar[int]
    NEW_ENCRYPTED_OBJECT_KEY_FIELD_NUMBER: _ClassVar[int]
    OPERATION_ID_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    header: RequestHeader
    bucket: str
    encrypted_object_key: bytes
    new_bucket: str
    new_encrypted_object_key: bytes
    operation_id: bytes
    cursor: SegmentPosition
    limit: int
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping]] = ..., bucket: _Optional[str] = ..., encrypted_object_key: _Optional[bytes] = ..., new_bucket: _Optional[str] = ..., new_encrypted_object_key: _Optional[bytes] = ..., operation_id: _Optional[bytes] = ..., cursor: _Optional[_Union[SegmentPosition, _Mapping]] = ..., limit: _Optional[int] = ...) -> None: ...

class ObjectBeginMoveResponse(_message.Message):
    __slots__ = ("stream_id", "encrypted_metadata_key_nonce", "encrypted_metadata_key", "segment_keys", "encryption_parameters", "operation_id", "segment_count", "more", "operation_expires_at")
    STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_METADATA_KEY_NONCE_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_METADATA_KEY_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_KEYS_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTION_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    OPERATION_ID_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    OPERATION_EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    stream_id: bytes
    encrypted_metadata_key_nonce: bytes
    encrypted_metadata_key: bytes
    segment_keys: _containers.RepeatedCompositeFieldContainer[EncryptedKeyAndNonce]
    encryption_parameters: EncryptionParameters
    operation_id: bytes
    segment_count: int
    more: bool
    operation_expires_at: _timestamp_pb2.Timestamp
    def __init__(self, stream_id: _Optional[bytes] = ..., encrypted_metadata_key_nonce: _Optional[bytes] = ..., encrypted_metadata_key: _Optional[bytes] = ..., segment_keys: _Optional[_Iterable[_Union[EncryptedKeyAndNonce, _Mapping]]] = ..., encryption_parameters: _Optional[_Union[EncryptionParameters, _Mapping]] = ..., operation_id: _Optional[bytes] = ..., segment_count: _Optional[int] = ..., more: _Optional[bool] = ..., operation_expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ObjectFinishMoveRequest(_message.Message):
    __slots__ = ("header", "operation_id", "stream_id", "new_bucket", "new_encrypted_object_key", "new_encrypted_metadata_key_nonce", "new_encrypted_metadata_key", "new_segment_keys", "conditions", "partial")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    OPERATION_ID_FIELD_NUMBER: _ClassVar[int]
    STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    NEW_BUCKET_FIELD_NUMBER: _ClassVar[int]
    NEW_ENCRYPTED_OBJECT_KEY_FIELD_NUMBER: _ClassVar[int]
    NEW_ENCRYPTED_METADATA_KEY_NONCE_FIELD_NUMBER: _ClassVar[int]
    NEW_ENCRYPTED_METADATA_KEY_FIELD_NUMBER: _ClassVar[int]
    NEW_SEGMENT_KEYS_FIELD_NUMBER: _ClassVar[int]
    CONDITIONS_FIELD_NUMBER: _ClassVar[int]
    PARTIAL_FIELD_NUMBER: _ClassVar[int]
    header: RequestHeader
    operation_id: bytes
    stream_id: bytes
    new_bucket: str
    new_encrypted_object_key: bytes
    new_encrypted_metadata_key_nonce: bytes
    new_encrypted_metadata_key: bytes
    new_segment_keys: _containers.RepeatedCompositeFieldContainer[EncryptedKeyAndNonce]
    conditions: CopyConditions
    partial: bool
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping]] = ..., operation_id: _Optional[bytes] = ..., stream_id: _Optional[bytes] = ..., new_bucket: _Optional[str] = ..., new_encrypted_object_key: _Optional[bytes] = ..., new_encrypted_metadata_key_nonce: _Optional[bytes] = ..., new_encrypted_metadata_key: _Optional[bytes] = ..., new_segment_keys: _Optional[_Iterable[_Union[EncryptedKeyAndNonce, _Mapping]]] = ..., conditions: _Optional[_Union[CopyConditions, _Mapping]] = ..., partial: _Optional[bool] = ...) -> None: ...

class ObjectFinishMoveResponse(_message.Message):
    __slots__ = ("object", "keys_received")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    KEYS_RECEIVED_FIELD_NUMBER: _ClassVar[int]
    object: Object
    keys_received: int
    def __init__(self, object: _Optional[_Union[Object, _Mapping]] = ..., keys_received: _Optional[int] = ...) -> None: ...

class OperationGetRequest(_message.Message):
    __slots__ = ("header", "operation_id")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    OPERATION_ID_FIELD_NUMBER: _ClassVar[int]
    header: RequestHeader
    operation_id: bytes
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping]] = ..., operation_id: _Optional[bytes] = ...) -> None: ...

class OperationGetResponse(_message.Message):
    __slots__ = ("finished", "keys_received", "last_position", "expires_at")
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    KEYS_RECEIVED_FIELD_NUMBER: _ClassVar[int]
    LAST_POSITION_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    finished: bool
    keys_received: int
    last_position: SegmentPosition
    expires_at: _timestamp_pb2.Timestamp
    def __init__(self, finished: _Optional[bool] = ..., keys_received: _Optional[int] = ..., last_position: _Optional[_Union[SegmentPosition, _Mapping]] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class PrefixBeginRequest(_message.Message):
    __slots__ = ("header", "bucket", "encrypted_prefix", "new_bucket", "new_encrypted_prefix", "move", "overwrite", "operation_id", "cursor", "limit")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    BUCKET_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_PREFIX_FIELD_NUMBER: _ClassVar[int]
    NEW_BUCKET_FIELD_NUMBER: _ClassVar[int]
    NEW_ENCRYPTED_PREFIX_FIELD_NUMBER: _ClassVar[int]
    MOVE_FIELD_NUMBER: _ClassVar[int]
    OVERWRITE_FIELD_NUMBER: _ClassVar[int]
    OPERATION_ID_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    header: RequestHeader
    bucket: str
    encrypted_prefix: bytes
    new_bucket: str
    new_encrypted_prefix: bytes
    move: bool
    overwrite: bool
    operation_id: bytes
    cursor: bytes
    limit: int
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping]] = ..., bucket: _Optional[str] = ..., encrypted_prefix: _Optional[bytes] = ..., new_bucket: _Optional[str] = ..., new_encrypted_prefix: _Optional[bytes] = ..., move: _Optional[bool] = ..., overwrite: _Optional[bool] = ..., operation_id: _Optional[bytes] = ..., cursor: _Optional[bytes] = ..., limit: _Optional[int] = ...) -> None: ...

class PrefixBeginResponse(_message.Message):
    __slots__ = ("operation_id", "entries", "more", "staged", "finished")
    OPERATION_ID_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    STAGED_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    operation_id: bytes
    entries: _containers.RepeatedCompositeFieldContainer[PrefixEntry]
    more: bool
    staged: int
    finished: bool
    def __init__(self, operation_id: _Optional[bytes] = ..., entries: _Optional[_Iterable[_Union[PrefixEntry, _Mapping]]] = ..., more: _Optional[bool] = ..., staged: _Optional[int] = ..., finished: _Optional[bool] = ...) -> None: ...

class PrefixEntry(_message.Message):
    __slots__ = ("encrypted_object_key", "stream_id", "cipher_suite", "encrypted_metadata_key_nonce", "encrypted_metadata_key", "segment_keys", "seen_metadata_key", "plain_size")
    ENCRYPTED_OBJECT_KEY_FIELD_NUMBER: _ClassVar[int]
    STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    CIPHER_SUITE_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_METADATA_KEY_NONCE_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_METADATA_KEY_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_KEYS_FIELD_NUMBER: _ClassVar[int]
    SEEN_METADATA_KEY_FIELD_NUMBER: _ClassVar[int]
    PLAIN_SIZE_FIELD_NUMBER: _ClassVar[int]
    encrypted_object_key: bytes
    stream_id: bytes
    cipher_suite: CipherSuite
    encrypted_metadata_key_nonce: bytes
    encrypted_metadata_key: bytes
    segment_keys: _containers.RepeatedCompositeFieldContainer[EncryptedKeyAndNonce]
    seen_metadata_key: bytes
    plain_size: int
    def __init__(self, encrypted_object_key: _Optional[bytes] = ..., stream_id: _Optional[bytes] = ..., cipher_suite: _Optional[_Union[CipherSuite, str]] = ..., encrypted_metadata_key_nonce: _Optional[bytes] = ..., encrypted_metadata_key: _Optional[bytes] = ..., segment_keys: _Optional[_Iterable[_Union[EncryptedKeyAndNonce, _Mapping]]] = ..., seen_metadata_key: _Optional[bytes] = ..., plain_size: _Optional[int] = ...) -> None: ...

class PrefixStageRequest(_message.Message):
    __slots__ = ("header", "operation_id", "entries")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    OPERATION_ID_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    header: RequestHeader
    operation_id: bytes
    entries: _containers.RepeatedCompositeFieldContainer[PrefixEntry]
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping]] = ..., operation_id: _Optional[bytes] = ..., entries: _Optional[_Iterable[_Union[PrefixEntry, _Mapping]]] = ...) -> None: ...

class PrefixStageResponse(_message.Message):
    __slots__ = ("staged",)
    STAGED_FIELD_NUMBER: _ClassVar[int]
    staged: int
    def __init__(self, staged: _Optional[int] = ...) -> None: ...

class PrefixFinishRequest(_message.Message):
    __slots__ = ("header", "operation_id")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    OPERATION_ID_FIELD_NUMBER: _ClassVar[int]
    header: RequestHeader
    operation_id: bytes
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping]] = ..., operation_id: _Optional[bytes] = ...) -> None: ...

class PrefixFinishResponse(_message.Message):
    __slots__ = ("objects", "existing_key")
    OBJECTS_FIELD_NUMBER: _ClassVar[int]
    EXISTING_KEY_FIELD_NUMBER: _ClassVar[int]
    objects: int
    existing_key: bytes
    def __init__(self, objects: _Optional[int] = ..., existing_key: _Optional[bytes] = ...) -> None: ...

class ApiKeyRevokeRequest(_message.Message):
    __slots__ = ("header", "api_key")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    API_KEY_FIELD_NUMBER: _ClassVar[int]
    header: RequestHeader
    api_key: bytes
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping]] = ..., api_key: _Optional[bytes] = ...) -> None: ...

class ApiKeyRevokeResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
