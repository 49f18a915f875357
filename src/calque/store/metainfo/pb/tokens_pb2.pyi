from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class UploadToken(_message.Message):
    __slots__ = ("project_id", "bucket", "key", "stream_id", "placement", "encryption", "expires_at")
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    BUCKET_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTION_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    project_id: bytes
    bucket: str
    key: bytes
    stream_id: bytes
    placement: int
    encryption: int
    expires_at: int
    def __init__(self, project_id: _Optional[bytes] = ..., bucket: _Optional[str] = ..., key: _Optional[bytes] = ..., stream_id: _Optional[bytes] = ..., placement: _Optional[int] = ..., encryption: _Optional[int] = ..., expires_at: _Optional[int] = ...) -> None: ...

class PieceToken(_message.Message):
    __slots__ = ("action", "caller", "node_id", "piece_id", "size", "valid_until", "expires_at", "project_id", "most_open")
    class Action(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNKNOWN: _ClassVar[PieceToken.Action]
        PUT: _ClassVar[PieceToken.Action]
        GET: _ClassVar[PieceToken.Action]
    UNKNOWN: PieceToken.Action
    PUT: PieceToken.Action
    GET: PieceToken.Action
    ACTION_FIELD_NUMBER: _ClassVar[int]
    CALLER_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    PIECE_ID_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    VALID_UNTIL_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    MOST_OPEN_FIELD_NUMBER: _ClassVar[int]
    action: PieceToken.Action
    caller: bytes
    node_id: bytes
    piece_id: bytes
    size: int
    valid_until: int
    expires_at: int
    project_id: bytes
    most_open: int
    def __init__(self, action: _Optional[_Union[PieceToken.Action, str]] = ..., caller: _Optional[bytes] = ..., node_id: _Optional[bytes] = ..., piece_id: _Optional[bytes] = ..., size: _Optional[int] = ..., valid_until: _Optional[int] = ..., expires_at: _Optional[int] = ..., project_id: _Optional[bytes] = ..., most_open: _Optional[int] = ...) -> None: ...

class SegmentToken(_message.Message):
    __slots__ = ("upload", "position", "root_piece_id", "redundancy", "node_ids", "begun_at", "most_encrypted", "spare_ids", "is_whole")
    UPLOAD_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    ROOT_PIECE_ID_FIELD_NUMBER: _ClassVar[int]
    REDUNDANCY_FIELD_NUMBER: _ClassVar[int]
    NODE_IDS_FIELD_NUMBER: _ClassVar[int]
    BEGUN_AT_FIELD_NUMBER: _ClassVar[int]
    MOST_ENCRYPTED_FIELD_NUMBER: _ClassVar[int]
    SPARE_IDS_FIELD_NUMBER: _ClassVar[int]
    IS_WHOLE_FIELD_NUMBER: _ClassVar[int]
    upload: UploadToken
    position: int
    root_piece_id: bytes
    redundancy: int
    node_ids: _containers.RepeatedScalarFieldContainer[bytes]
    begun_at: int
    most_encrypted: int
    spare_ids: _containers.RepeatedScalarFieldContainer[bytes]
    is_whole: bool
    def __init__(self, upload: _Optional[_Union[UploadToken, _Mapping]] = ..., position: _Optional[int] = ..., root_piece_id: _Optional[bytes] = ..., redundancy: _Optional[int] = ..., node_ids: _Optional[_Iterable[bytes]] = ..., begun_at: _Optional[int] = ..., most_encrypted: _Optional[int] = ..., spare_ids: _Optional[_Iterable[bytes]] = ..., is_whole: _Optional[bool] = ...) -> None: ...

class OperationToken(_message.Message):
    __slots__ = ("kind", "operation_id", "project_id", "caller", "bucket", "key", "stream_id", "new_bucket", "new_key", "override_metadata", "expires_at")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNKNOWN: _ClassVar[OperationToken.Kind]
        COPY: _ClassVar[OperationToken.Kind]
        MOVE: _ClassVar[OperationToken.Kind]
        COPY_PREFIX: _ClassVar[OperationToken.Kind]
        MOVE_PREFIX: _ClassVar[OperationToken.Kind]
    UNKNOWN: OperationToken.Kind
    COPY: OperationToken.Kind
    MOVE: OperationToken.Kind
    COPY_PREFIX: OperationToken.Kind
    MOVE_PREFIX: OperationToken.Kind
    KIND_FIELD_NUMBER: _ClassVar[int]
    OPERATION_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECT_ID_FIELD_NUMBER: _ClassVar[int]
    CALLER_FIELD_NUMBER: _ClassVar[int]
    BUCKET_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    NEW_BUCKET_FIELD_NUMBER: _ClassVar[int]
    NEW_KEY_FIELD_NUMBER: _ClassVar[int]
    OVERRIDE_METADATA_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    kind: OperationToken.Kind
    operation_id: bytes
    project_id: bytes
    caller: bytes
    bucket: str
    key: bytes
    stream_id: bytes
    new_bucket: str
    new_key: bytes
    override_metadata: bool
    expires_at: int
    def __init__(self, kind: _Optional[_Union[OperationToken.Kind, str]] = ..., operation_id: _Optional[bytes] = ..., project_id: _Optional[bytes] = ..., caller: _Optional[bytes] = ..., bucket: _Optional[str] = ..., key: _Optional[bytes] = ..., stream_id: _Optional[bytes] = ..., new_bucket: _Optional[str] = ..., new_key: _Optional[bytes] = ..., override_metadata: _Optional[bool] = ..., expires_at: _Optional[int] = ...) -> None: ...

class ApiKeyData(_message.Message):
    __slots__ = ("head", "caveats", "tail")
    HEAD_FIELD_NUMBER: _ClassVar[int]
    CAVEATS_FIELD_NUMBER: _ClassVar[int]
    TAIL_FIELD_NUMBER: _ClassVar[int]
    head: bytes
    caveats: _containers.RepeatedScalarFieldContainer[bytes]
    tail: bytes
    def __init__(self, head: _Optional[bytes] = ..., caveats: _Optional[_Iterable[bytes]] = ..., tail: _Optional[bytes] = ...) -> None: ...

class Caveat(_message.Message):
    __slots__ = ("operations", "paths", "not_before", "not_after", "nonce")
    OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    PATHS_FIELD_NUMBER: _ClassVar[int]
    NOT_BEFORE_FIELD_NUMBER: _ClassVar[int]
    NOT_AFTER_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    operations: _containers.RepeatedScalarFieldContainer[int]
    paths: _containers.RepeatedCompositeFieldContainer[Path]
    not_before: int
    not_after: int
    nonce: bytes
    def __init__(self, operations: _Optional[_Iterable[int]] = ..., paths: _Optional[_Iterable[_Union[Path, _Mapping]]] = ..., not_before: _Optional[int] = ..., not_after: _Optional[int] = ..., nonce: _Optional[bytes] = ...) -> None: ...

class Path(_message.Message):
    __slots__ = ("bucket", "encrypted_prefix")
    BUCKET_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_PREFIX_FIELD_NUMBER: _ClassVar[int]
    bucket: str
    encrypted_prefix: bytes
    def __init__(self, bucket: _Optional[str] = ..., encrypted_prefix: _Optional[bytes] = ...) -> None: ...
