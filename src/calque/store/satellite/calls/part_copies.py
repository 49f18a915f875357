"""The call that makes ranges of an object segments of an upload."""

from __future__ import annotations

from calque.store.metabase.model import checks as verify
from calque.store.metabase.objects.copy_part import CopyPart, PartSlice, copy_part
from calque.store.metainfo.api_key import Action
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.satellite.caller import Caller
from calque.store.satellite.calls import messages
from calque.store.satellite.satellite import Satellite


def copy_part_of_object(
    satellite: Satellite, caller: Caller, request: pb.PartCopyRequest
) -> pb.PartCopyResponse:
    """CopyPart: whoever may not read the source may not refer to it either."""
    upload = satellite.open_upload(caller, request.upload_id)
    caller.require(Action.WRITE, upload.bucket, upload.key)
    caller.require(Action.READ, request.bucket, request.encrypted_object_key, "source")
    verify.key_count(len(request.slices))
    asked = CopyPart(
        caller.location(upload.bucket, upload.key),
        upload.stream_id,
        caller.location(request.bucket, request.encrypted_object_key),
        request.stream_id,
        tuple(_slice(each) for each in request.slices),
    )
    copy_part(satellite.database, asked)
    return pb.PartCopyResponse()


def _slice(message: pb.PartSlice) -> PartSlice:
    return PartSlice(
        messages.to_position(message.position),
        messages.to_position(message.source_position),
        message.skip,
        message.length,
        message.encrypted_key_nonce,
        message.encrypted_key,
        message.encrypted_etag,
    )
