"""The calls of a satellite, in one typed face for both ways to reach it.

``Metainfo`` has one method for each call of the service in ``pb/metainfo.proto``. The
endpoint (in process) and the gRPC client supply only ``call``; so whoever holds a
``Metainfo`` need not know which of the two it is. Every failure is an error of
:mod:`calque.errors`, the same over both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import cast

from google.protobuf.message import Message

from calque.store.metainfo.pb import metainfo_pb2 as pb

SERVICE = "calque.metainfo.Metainfo"


@dataclass(frozen=True)
class Call:
    """One call of the service: its name and its two message types.

    A ``repeatable`` call whose answer was lost may be sent again: the satellite gives the same
    answer, or one as good. (A second BeginObject leaves an upload that is swept after a day.)
    """

    name: str
    request: type[Message]
    response: type[Message]
    repeatable: bool = True
    patience: float = 1.0
    """How many times as long as others it may take."""

    @property
    def path(self) -> str:
        """The call's path on the wire."""
        return f"/{SERVICE}/{self.name}"


CALLS: dict[str, Call] = {
    call.name: call
    for call in (
        Call("GetProject", pb.ProjectGetRequest, pb.ProjectGetResponse),
        Call("CreateBucket", pb.BucketCreateRequest, pb.BucketCreateResponse, repeatable=False),
        Call("GetBucket", pb.BucketGetRequest, pb.BucketGetResponse),
        Call("DeleteBucket", pb.BucketDeleteRequest, pb.BucketDeleteResponse, repeatable=False),
        Call("ListBuckets", pb.BucketListRequest, pb.BucketListResponse),
        Call("BeginObject", pb.ObjectBeginRequest, pb.ObjectBeginResponse),
        Call("CommitObject", pb.ObjectCommitRequest, pb.ObjectCommitResponse),
        Call("AbortObject", pb.ObjectAbortRequest, pb.ObjectAbortResponse),
        Call("GetObject", pb.ObjectGetRequest, pb.ObjectGetResponse),
        Call("ListObjects", pb.ObjectListRequest, pb.ObjectListResponse),
        Call("DeleteObject", pb.ObjectDeleteRequest, pb.ObjectDeleteResponse, repeatable=False),
        Call("DeleteObjects", pb.ObjectsDeleteRequest, pb.ObjectsDeleteResponse, repeatable=False),
        Call("PutInlineObject", pb.ObjectPutInlineRequest, pb.ObjectPutInlineResponse),
        Call("PutObject", pb.ObjectPutRequest, pb.ObjectPutResponse, repeatable=False),
        Call(
            "UpdateObjectMetadata", pb.ObjectUpdateMetadataRequest, pb.ObjectUpdateMetadataResponse
        ),
        Call("BeginSegment", pb.SegmentBeginRequest, pb.SegmentBeginResponse),
        Call("CommitSegment", pb.SegmentCommitRequest, pb.SegmentCommitResponse),
        Call("MakeInlineSegment", pb.SegmentMakeInlineRequest, pb.SegmentMakeInlineResponse),
        Call("CopyPart", pb.PartCopyRequest, pb.PartCopyResponse),
        Call("ListSegments", pb.SegmentListRequest, pb.SegmentListResponse),
        Call("BeginCopyObject", pb.ObjectBeginCopyRequest, pb.ObjectBeginCopyResponse),
        Call("FinishCopyObject", pb.ObjectFinishCopyRequest, pb.ObjectFinishCopyResponse),
        Call("BeginMoveObject", pb.ObjectBeginMoveRequest, pb.ObjectBeginMoveResponse),
        Call("FinishMoveObject", pb.ObjectFinishMoveRequest, pb.ObjectFinishMoveResponse),
        Call("GetOperation", pb.OperationGetRequest, pb.OperationGetResponse),
        Call("BeginPrefix", pb.PrefixBeginRequest, pb.PrefixBeginResponse),
        Call("StagePrefix", pb.PrefixStageRequest, pb.PrefixStageResponse),
        Call("FinishPrefix", pb.PrefixFinishRequest, pb.PrefixFinishResponse, patience=10.0),
        Call("RevokeApiKey", pb.ApiKeyRevokeRequest, pb.ApiKeyRevokeResponse, repeatable=False),
    )
}


class Metainfo(ABC):
    """A satellite, in this process or behind a network."""

    may_lose_answers = True
    """Whether a call can be carried out of which the caller then hears nothing."""

    @abstractmethod
    def call(self, name: str, request: Message) -> Message:
        """Carry out the call ``name``; raises a :class:`~calque.errors.CalqueError`."""

    @abstractmethod
    def close(self) -> None:
        """Let go of connections; the object must not be used afterwards."""

    def get_project(self, request: pb.ProjectGetRequest) -> pb.ProjectGetResponse:
        """The project behind the API key: its salt and the limits a client must know."""
        return cast(pb.ProjectGetResponse, self.call("GetProject", request))

    def create_bucket(self, request: pb.BucketCreateRequest) -> pb.BucketCreateResponse:
        """Make an empty bucket; ``AlreadyExists`` when there is one."""
        return cast(pb.BucketCreateResponse, self.call("CreateBucket", request))

    def get_bucket(self, request: pb.BucketGetRequest) -> pb.BucketGetResponse:
        """One bucket, or ``NotFound``."""
        return cast(pb.BucketGetResponse, self.call("GetBucket", request))

    def delete_bucket(self, request: pb.BucketDeleteRequest) -> pb.BucketDeleteResponse:
        """Delete an empty bucket, or with ``delete_all`` one with everything in it."""
        return cast(pb.BucketDeleteResponse, self.call("DeleteBucket", request))

    def list_buckets(self, request: pb.BucketListRequest) -> pb.BucketListResponse:
        """The buckets this key may see, by name."""
        return cast(pb.BucketListResponse, self.call("ListBuckets", request))

    def begin_object(self, request: pb.ObjectBeginRequest) -> pb.ObjectBeginResponse:
        """Start an upload; nothing is visible until ``commit_object``."""
        return cast(pb.ObjectBeginResponse, self.call("BeginObject", request))

    def commit_object(self, request: pb.ObjectCommitRequest) -> pb.ObjectCommitResponse:
        """Make an upload the object at its key, replacing what is there, in one transaction."""
        return cast(pb.ObjectCommitResponse, self.call("CommitObject", request))

    def abort_object(self, request: pb.ObjectAbortRequest) -> pb.ObjectAbortResponse:
        """Give an upload up and free what it stored."""
        return cast(pb.ObjectAbortResponse, self.call("AbortObject", request))

    def get_object(self, request: pb.ObjectGetRequest) -> pb.ObjectGetResponse:
        """The committed, unexpired object at a key, or ``NotFound``."""
        return cast(pb.ObjectGetResponse, self.call("GetObject", request))

    def list_objects(self, request: pb.ObjectListRequest) -> pb.ObjectListResponse:
        """Objects (or pending uploads) below an encrypted prefix, in key order."""
        return cast(pb.ObjectListResponse, self.call("ListObjects", request))

    def delete_object(self, request: pb.ObjectDeleteRequest) -> pb.ObjectDeleteResponse:
        """Delete the committed object; no error when there is none."""
        return cast(pb.ObjectDeleteResponse, self.call("DeleteObject", request))

    def delete_objects(self, request: pb.ObjectsDeleteRequest) -> pb.ObjectsDeleteResponse:
        """Delete the objects at many keys in one transaction, with an answer for each."""
        return cast(pb.ObjectsDeleteResponse, self.call("DeleteObjects", request))

    def put_inline_object(self, request: pb.ObjectPutInlineRequest) -> pb.ObjectPutInlineResponse:
        """Store an object of at most one inline segment in one transaction."""
        return cast(pb.ObjectPutInlineResponse, self.call("PutInlineObject", request))

    def put_object(self, request: pb.ObjectPutRequest) -> pb.ObjectPutResponse:
        """Make a segment that was begun without an upload an object, in one transaction."""
        return cast(pb.ObjectPutResponse, self.call("PutObject", request))

    def update_object_metadata(
        self, request: pb.ObjectUpdateMetadataRequest
    ) -> pb.ObjectUpdateMetadataResponse:
        """Replace the metadata of exactly this object."""
        return cast(pb.ObjectUpdateMetadataResponse, self.call("UpdateObjectMetadata", request))

    def begin_segment(self, request: pb.SegmentBeginRequest) -> pb.SegmentBeginResponse:
        """Get a root piece id and the nodes for one remote segment."""
        return cast(pb.SegmentBeginResponse, self.call("BeginSegment", request))

    def commit_segment(self, request: pb.SegmentCommitRequest) -> pb.SegmentCommitResponse:
        """Record the pieces of a remote segment."""
        return cast(pb.SegmentCommitResponse, self.call("CommitSegment", request))

    def make_inline_segment(
        self, request: pb.SegmentMakeInlineRequest
    ) -> pb.SegmentMakeInlineResponse:
        """Store a small segment inside the metadata."""
        return cast(pb.SegmentMakeInlineResponse, self.call("MakeInlineSegment", request))

    def copy_part(self, request: pb.PartCopyRequest) -> pb.PartCopyResponse:
        """Make ranges of an object segments of an upload; a repeat changes nothing."""
        return cast(pb.PartCopyResponse, self.call("CopyPart", request))

    def list_segments(self, request: pb.SegmentListRequest) -> pb.SegmentListResponse:
        """Segments of an object or an upload, with the pieces to download."""
        return cast(pb.SegmentListResponse, self.call("ListSegments", request))

    def begin_copy_object(self, request: pb.ObjectBeginCopyRequest) -> pb.ObjectBeginCopyResponse:
        """Keys to re-wrap for a copy, and the operation id that binds it."""
        return cast(pb.ObjectBeginCopyResponse, self.call("BeginCopyObject", request))

    def finish_copy_object(
        self, request: pb.ObjectFinishCopyRequest
    ) -> pb.ObjectFinishCopyResponse:
        """Commit the copy in one transaction; a repeat returns the same object."""
        return cast(pb.ObjectFinishCopyResponse, self.call("FinishCopyObject", request))

    def begin_move_object(self, request: pb.ObjectBeginMoveRequest) -> pb.ObjectBeginMoveResponse:
        """Keys to re-wrap for a move, and the operation id that binds it."""
        return cast(pb.ObjectBeginMoveResponse, self.call("BeginMoveObject", request))

    def finish_move_object(
        self, request: pb.ObjectFinishMoveRequest
    ) -> pb.ObjectFinishMoveResponse:
        """Commit the move in one transaction; a repeat returns the same object."""
        return cast(pb.ObjectFinishMoveResponse, self.call("FinishMoveObject", request))

    def get_operation(self, request: pb.OperationGetRequest) -> pb.OperationGetResponse:
        """How many keys of a long copy or move have arrived."""
        return cast(pb.OperationGetResponse, self.call("GetOperation", request))

    def begin_prefix(self, request: pb.PrefixBeginRequest) -> pb.PrefixBeginResponse:
        """A page of what lies below a prefix, to be copied or moved as a whole."""
        return cast(pb.PrefixBeginResponse, self.call("BeginPrefix", request))

    def stage_prefix(self, request: pb.PrefixStageRequest) -> pb.PrefixStageResponse:
        """New names and keys of some objects; nothing happens to them yet."""
        return cast(pb.PrefixStageResponse, self.call("StagePrefix", request))

    def finish_prefix(self, request: pb.PrefixFinishRequest) -> pb.PrefixFinishResponse:
        """Copy or move all that was staged in one transaction; a repeat gives the same answer."""
        return cast(pb.PrefixFinishResponse, self.call("FinishPrefix", request))

    def revoke_api_key(self, request: pb.ApiKeyRevokeRequest) -> pb.ApiKeyRevokeResponse:
        """Refuse a key, and all keys attenuated from it, from now on."""
        return cast(pb.ApiKeyRevokeResponse, self.call("RevokeApiKey", request))
