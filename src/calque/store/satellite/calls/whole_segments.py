"""The call that makes one segment on nodes an object at once."""

from __future__ import annotations

from calque.errors import InvalidInput
from calque.store.metabase.model.conditions import Conditions
from calque.store.metabase.model.records import Encryption
from calque.store.metabase.objects.begin_object import BeginObject
from calque.store.metabase.objects.put_object import PutObject, put_object
from calque.store.metainfo.api_key import Action
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.satellite.caller import Caller
from calque.store.satellite.calls import messages
from calque.store.satellite.calls.segments import check_segment, close_pieces
from calque.store.satellite.satellite import Satellite


def put(satellite: Satellite, caller: Caller, request: pb.ObjectPutRequest) -> pb.ObjectPutResponse:
    """PutObject: key, expiry and cipher are those that the segment was begun with."""
    token, segment = check_segment(satellite, caller, request.segment)
    upload = token.upload
    if not token.is_whole:
        raise InvalidInput("the segment belongs to an upload: commit that")
    begin = BeginObject(
        caller.location(upload.bucket, upload.key),
        Encryption.decode(upload.encryption),
        upload.expires_at or None,
        messages.to_metadata(
            request.encrypted_metadata_nonce,
            request.encrypted_metadata,
            request.encrypted_metadata_encrypted_key,
        ),
    )
    asked = PutObject(
        begin,
        upload.stream_id,
        segment,
        Conditions(
            if_not_exists=request.if_not_exists,
            if_match=request.if_match_stream_id or None,
        ),
        may_overwrite=caller.may(Action.DELETE, upload.bucket, upload.key),
    )
    committed = put_object(satellite.database, asked)
    close_pieces(satellite, token, request.segment)
    satellite.open_pieces.close_upload(upload.project_id, upload.stream_id)
    satellite.free(committed.freed)
    return pb.ObjectPutResponse(object=messages.object_(committed.object))
