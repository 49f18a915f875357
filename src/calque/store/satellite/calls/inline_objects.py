"""The call that stores a small object at once."""

from __future__ import annotations

from hashlib import blake2b

from calque.errors import InvalidInput
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.conditions import Conditions
from calque.store.metabase.model.records import STREAM_ID_SIZE, Position
from calque.store.metabase.objects.commit_segment import CommitSegment
from calque.store.metabase.objects.put_object import PutObject, put_object
from calque.store.metainfo.api_key import Action
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.satellite.caller import Caller
from calque.store.satellite.calls import messages
from calque.store.satellite.calls.segments import check_inline
from calque.store.satellite.satellite import Satellite

TIME_SIZE = 6


def put(
    satellite: Satellite, caller: Caller, request: pb.ObjectPutInlineRequest
) -> pb.ObjectPutInlineResponse:
    """PutInlineObject."""
    where = (request.bucket, request.encrypted_object_key)
    caller.require(Action.WRITE, *where)
    begin = messages.to_begin(
        caller.location(*where),
        request,
        messages.to_metadata(
            request.encrypted_metadata_nonce,
            request.encrypted_metadata,
            request.encrypted_metadata_encrypted_key,
        ),
    )
    stream_id = _stream_id(caller, request)
    asked = PutObject(
        begin,
        stream_id,
        _segment(satellite, request, stream_id),
        Conditions(
            if_not_exists=request.if_not_exists,
            if_match=request.if_match_stream_id or None,
        ),
        may_overwrite=caller.may(Action.DELETE, *where),
    )
    committed = put_object(satellite.database, asked)
    satellite.free(committed.freed)
    return pb.ObjectPutInlineResponse(object=messages.object_(committed.object))


def _stream_id(caller: Caller, request: pb.ObjectPutInlineRequest) -> bytes:
    """The same for a repeat of the request, and none that its sender could choose."""
    verify.exactly(request.request_id, STREAM_ID_SIZE, "request id")
    digest = blake2b(request.request_id, digest_size=STREAM_ID_SIZE - TIME_SIZE)
    for each in (caller.project_id, request.bucket.encode(), request.encrypted_object_key):
        digest.update(len(each).to_bytes(8, "big") + each)
    return request.request_id[:TIME_SIZE] + digest.digest()


def _segment(
    satellite: Satellite, request: pb.ObjectPutInlineRequest, stream_id: bytes
) -> CommitSegment | None:
    if not request.encrypted_key:
        if request.inline_data or request.plain_size:
            raise InvalidInput("inline data came without its key")
        return None
    check_inline(satellite, request.plain_size, request.inline_data)
    return CommitSegment(
        stream_id=stream_id,
        position=Position(0, 0),
        encrypted_key_nonce=request.encrypted_key_nonce,
        encrypted_key=request.encrypted_key,
        encrypted_size=len(request.inline_data),
        plain_size=request.plain_size,
        inline_data=request.inline_data,
    )
