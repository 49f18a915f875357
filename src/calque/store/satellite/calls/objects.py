"""The calls on objects."""

from __future__ import annotations

from calque.errors import InvalidInput, PermissionDenied
from calque.store.metabase.accounts.get_bucket import get_bucket
from calque.store.metabase.model.conditions import Conditions
from calque.store.metabase.model.packed_keys import PackedKeys
from calque.store.metabase.model.records import ObjectRecord
from calque.store.metabase.model.schema import COMMITTED, PENDING
from calque.store.metabase.objects import list_objects as listing
from calque.store.metabase.objects.begin_object import begin_object
from calque.store.metabase.objects.commit_object import CommitObject, commit_object
from calque.store.metabase.objects.delete_object import (
    AbortObject,
    DeleteObject,
    abort_object,
    delete_object,
)
from calque.store.metabase.objects.delete_objects import (
    MAX_KEYS,
    Answer,
    DeleteObjects,
    delete_objects,
)
from calque.store.metabase.objects.get_object import get_object
from calque.store.metabase.objects.update_metadata import UpdateMetadata, update_metadata
from calque.store.metainfo.api_key import Action
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.metainfo.pb import tokens_pb2 as tokens
from calque.store.satellite.caller import Caller
from calque.store.satellite.calls import messages
from calque.store.satellite.satellite import Satellite, page_limit


def begin(
    satellite: Satellite, caller: Caller, request: pb.ObjectBeginRequest
) -> pb.ObjectBeginResponse:
    """BeginObject."""
    caller.require(Action.WRITE, request.bucket, request.encrypted_object_key)
    asked = messages.to_begin(
        caller.location(request.bucket, request.encrypted_object_key),
        request,
        messages.to_metadata(
            request.encrypted_metadata_nonce,
            request.encrypted_metadata,
            request.encrypted_metadata_encrypted_key,
        ),
        int(satellite.settings.zombie_after_s * 1_000_000),
    )
    record = begin_object(satellite.database, asked)
    placement = get_bucket(satellite.database, caller.project_id, request.bucket).placement
    return pb.ObjectBeginResponse(
        upload_id=upload_id(satellite, record, placement),
        stream_id=record.stream_id,
        redundancy=messages.redundancy(satellite.settings.redundancy),
    )


def upload_id(satellite: Satellite, record: ObjectRecord, placement: int) -> bytes:
    """The signed id of a pending upload."""
    return satellite.signer.sign(
        tokens.UploadToken(
            project_id=record.project_id,
            bucket=record.bucket_name,
            key=record.object_key,
            stream_id=record.stream_id,
            placement=placement,
            encryption=record.encryption,
            expires_at=record.expires_at or 0,
        )
    )


def commit(
    satellite: Satellite, caller: Caller, request: pb.ObjectCommitRequest
) -> pb.ObjectCommitResponse:
    """CommitObject."""
    upload = satellite.open_upload(caller, request.upload_id)
    caller.require(Action.WRITE, upload.bucket, upload.key)
    metadata = messages.to_metadata(
        request.encrypted_metadata_nonce,
        request.encrypted_metadata,
        request.encrypted_metadata_encrypted_key,
    )
    if any(metadata) and not request.override_metadata:
        raise InvalidInput("new metadata came without override_metadata")
    asked = CommitObject(
        caller.location(upload.bucket, upload.key),
        upload.stream_id,
        metadata if request.override_metadata else None,
        Conditions(
            if_not_exists=request.if_not_exists,
            if_match=request.if_match_stream_id or None,
        ),
        may_overwrite=caller.may(Action.DELETE, upload.bucket, upload.key),
        parts=frozenset(request.part_numbers) if request.only_parts else None,
        joined_keys=PackedKeys.of(messages.to_segment_keys(request.joined_keys)),
    )
    committed = commit_object(satellite.database, asked)
    satellite.open_pieces.close_upload(upload.project_id, upload.stream_id)
    satellite.free(committed.freed)
    return pb.ObjectCommitResponse(object=messages.object_(committed.object))


def abort(
    satellite: Satellite, caller: Caller, request: pb.ObjectAbortRequest
) -> pb.ObjectAbortResponse:
    """AbortObject."""
    upload = satellite.open_upload(caller, request.upload_id)
    caller.require_any((Action.WRITE, Action.DELETE), upload.bucket, upload.key)
    asked = AbortObject(caller.location(upload.bucket, upload.key), upload.stream_id)
    satellite.free(abort_object(satellite.database, asked).freed)
    satellite.open_pieces.close_upload(upload.project_id, upload.stream_id)
    return pb.ObjectAbortResponse()


def get(satellite: Satellite, caller: Caller, request: pb.ObjectGetRequest) -> pb.ObjectGetResponse:
    """GetObject."""
    caller.require_any((Action.READ, Action.LIST), request.bucket, request.encrypted_object_key)
    location = caller.location(request.bucket, request.encrypted_object_key)
    return pb.ObjectGetResponse(object=messages.object_(get_object(satellite.database, location)))


def list_(
    satellite: Satellite, caller: Caller, request: pb.ObjectListRequest
) -> pb.ObjectListResponse:
    """ListObjects."""
    caller.require(Action.LIST, request.bucket, request.encrypted_prefix, "objects")
    status = request.status or COMMITTED
    asked = listing.ListObjects(
        caller.project_id,
        request.bucket,
        request.encrypted_prefix,
        request.encrypted_cursor if request.HasField("encrypted_cursor") else None,
        page_limit(request.limit, listing.MAX_PAGE),
        request.recursive,
        status,
        request.version_cursor,
        request.delimiter or b"/",
        request.known_mark,
    )
    page = listing.list_objects(satellite.database, asked)
    placement = 0
    if status == PENDING:
        placement = get_bucket(satellite.database, caller.project_id, request.bucket).placement
    return pb.ObjectListResponse(
        items=[_item(satellite, item, placement) for item in page.items],
        more=page.more,
        mark=page.mark,
        unchanged=page.unchanged,
    )


def _item(satellite: Satellite, item: listing.ListItem, placement: int) -> pb.ObjectListItem:
    if item.object is None:
        return pb.ObjectListItem(encrypted_object_key=item.key, is_prefix=True)
    resume = b""
    if item.object.status == PENDING:
        resume = upload_id(satellite, item.object, placement)
    return pb.ObjectListItem(
        encrypted_object_key=item.key, object=messages.object_(item.object, upload_id=resume)
    )


def delete(
    satellite: Satellite, caller: Caller, request: pb.ObjectDeleteRequest
) -> pb.ObjectDeleteResponse:
    """DeleteObject; what was deleted is told to callers that may read it."""
    where = (request.bucket, request.encrypted_object_key)
    caller.require(Action.DELETE, *where)
    asked = DeleteObject(caller.location(*where), request.if_match_stream_id or None)
    deleted = delete_object(satellite.database, asked)
    satellite.free(deleted.freed)
    visible = deleted.object is not None and caller.may(Action.READ, *where)
    return pb.ObjectDeleteResponse(
        deleted=deleted.object is not None,
        object=messages.object_(deleted.object) if visible and deleted.object else None,
    )


def delete_many(
    satellite: Satellite, caller: Caller, request: pb.ObjectsDeleteRequest
) -> pb.ObjectsDeleteResponse:
    """DeleteObjects: a key that may not be deleted is no hindrance to the others."""
    if not 1 <= len(request.items) <= MAX_KEYS:
        raise InvalidInput(f"{len(request.items)} keys in one call, it takes 1 to {MAX_KEYS}")
    keys = [item.encrypted_object_key for item in request.items]
    may = [caller.may(Action.DELETE, request.bucket, key) for key in keys]
    asked = tuple(
        DeleteObject(caller.location(request.bucket, key), item.if_match_stream_id or None)
        for key, item, allowed in zip(keys, request.items, may, strict=True)
        if allowed
    )
    answers = iter(list[Answer]())
    if asked:
        deleted = delete_objects(satellite.database, DeleteObjects(asked))
        satellite.free(deleted.freed)
        answers = iter(deleted.answers)
    denied = PermissionDenied(f"this API key may not delete the object in {request.bucket!r}")
    return pb.ObjectsDeleteResponse(
        items=[_delete_answer(next(answers) if allowed else denied) for allowed in may]
    )


def _delete_answer(answer: Answer) -> pb.ObjectDeleteAnswer:
    if isinstance(answer, bool):
        return pb.ObjectDeleteAnswer(deleted=answer)
    return pb.ObjectDeleteAnswer(error_kind=type(answer).__name__, error_message=answer.message)


def update(
    satellite: Satellite, caller: Caller, request: pb.ObjectUpdateMetadataRequest
) -> pb.ObjectUpdateMetadataResponse:
    """UpdateObjectMetadata: overwriting metadata needs the right to delete, too."""
    where = (request.bucket, request.encrypted_object_key)
    caller.require(Action.WRITE, *where)
    caller.require(Action.DELETE, *where)
    asked = UpdateMetadata(
        caller.location(*where),
        request.stream_id,
        messages.to_metadata(
            request.encrypted_metadata_nonce,
            request.encrypted_metadata,
            request.encrypted_metadata_encrypted_key,
        ),
    )
    record = update_metadata(satellite.database, asked)
    return pb.ObjectUpdateMetadataResponse(object=messages.object_(record))
