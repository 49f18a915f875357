"""The calls that copy and move."""

from __future__ import annotations

import os
from typing import Any

from calque.errors import InvalidInput, PermissionDenied
from calque.store.metabase.copies.begin_copy import BeginCopy, CopyPage, begin_copy
from calque.store.metabase.copies.finish_copy import FinishCopy, finish_copy
from calque.store.metabase.copies.finish_move import FinishMove, finish_move
from calque.store.metabase.copies.operations import (
    OPERATION_ID_SIZE,
    Operation,
    OperationProgress,
    operation_progress,
    store_keys,
)
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.packed_keys import PackedKeys
from calque.store.metainfo.api_key import Action
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.metainfo.pb import tokens_pb2 as tokens
from calque.store.satellite.caller import Caller
from calque.store.satellite.calls import messages
from calque.store.satellite.satellite import Satellite, page_limit

COPY = tokens.OperationToken.COPY
MOVE = tokens.OperationToken.MOVE

BeginRequest = pb.ObjectBeginCopyRequest | pb.ObjectBeginMoveRequest
FinishRequest = pb.ObjectFinishCopyRequest | pb.ObjectFinishMoveRequest


def begin_copy_object(
    satellite: Satellite, caller: Caller, request: pb.ObjectBeginCopyRequest
) -> pb.ObjectBeginCopyResponse:
    """BeginCopyObject: writes nothing; the operation id binds everything."""
    token = _token(satellite, caller, request, COPY)
    token.override_metadata = request.override_metadata
    _authorise(caller, token)
    page = _page(satellite, caller, request, token)
    return pb.ObjectBeginCopyResponse(**_answer(satellite, token, page))


def begin_move_object(
    satellite: Satellite, caller: Caller, request: pb.ObjectBeginMoveRequest
) -> pb.ObjectBeginMoveResponse:
    """BeginMoveObject."""
    token = _token(satellite, caller, request, MOVE)
    _authorise(caller, token)
    page = _page(satellite, caller, request, token)
    return pb.ObjectBeginMoveResponse(**_answer(satellite, token, page))


def finish_copy_object(
    satellite: Satellite, caller: Caller, request: pb.ObjectFinishCopyRequest
) -> pb.ObjectFinishCopyResponse:
    """FinishCopyObject: one transaction, authorised again for source and destination."""
    token = _open_to_finish(satellite, caller, request, COPY)
    keys = PackedKeys.of(messages.to_segment_keys(request.new_segment_keys))
    if request.partial:
        stored = store_keys(satellite.database, _operation(token), keys)
        return pb.ObjectFinishCopyResponse(keys_received=stored.keys_received)
    asked = FinishCopy(
        _operation(token),
        caller.location(token.bucket, token.key),
        token.stream_id,
        caller.location(token.new_bucket, token.new_key),
        keys,
        messages.to_metadata(
            request.new_encrypted_metadata_key_nonce,
            request.new_encrypted_metadata,
            request.new_encrypted_metadata_key,
        ),
        token.override_metadata,
        messages.to_conditions(request.conditions),
        may_overwrite=caller.may(Action.DELETE, token.new_bucket, token.new_key),
    )
    committed = finish_copy(satellite.database, asked)
    if committed.is_new:
        satellite.metrics.count_copy()
    satellite.free(committed.freed)
    return pb.ObjectFinishCopyResponse(object=messages.object_(committed.object))


def finish_move_object(
    satellite: Satellite, caller: Caller, request: pb.ObjectFinishMoveRequest
) -> pb.ObjectFinishMoveResponse:
    """FinishMoveObject."""
    token = _open_to_finish(satellite, caller, request, MOVE)
    keys = PackedKeys.of(messages.to_segment_keys(request.new_segment_keys))
    if request.partial:
        stored = store_keys(satellite.database, _operation(token), keys)
        return pb.ObjectFinishMoveResponse(keys_received=stored.keys_received)
    asked = FinishMove(
        _operation(token),
        caller.location(token.bucket, token.key),
        token.stream_id,
        caller.location(token.new_bucket, token.new_key),
        keys,
        request.new_encrypted_metadata_key or None,
        request.new_encrypted_metadata_key_nonce or None,
        messages.to_conditions(request.conditions),
        may_overwrite=caller.may(Action.DELETE, token.new_bucket, token.new_key),
    )
    committed = finish_move(satellite.database, asked)
    satellite.free(committed.freed)
    return pb.ObjectFinishMoveResponse(object=messages.object_(committed.object))


def get_operation(
    satellite: Satellite, caller: Caller, request: pb.OperationGetRequest
) -> pb.OperationGetResponse:
    """GetOperation."""
    token = _open(satellite, caller, request.operation_id, None)
    progress: OperationProgress = operation_progress(satellite.database, _operation(token))
    last = progress.last_position
    return pb.OperationGetResponse(
        finished=progress.finished,
        keys_received=progress.keys_received,
        last_position=None if last is None else messages.position(last),
        expires_at=messages.timestamp(token.expires_at),
    )


def _token(
    satellite: Satellite, caller: Caller, request: BeginRequest, kind: tokens.OperationToken.Kind
) -> tokens.OperationToken:
    """The operation that this request begins, or whose next page it asks for."""
    if not request.operation_id:
        lifetime = int(satellite.settings.operation_lifetime_s * 1_000_000)
        return tokens.OperationToken(
            kind=kind,
            operation_id=os.urandom(OPERATION_ID_SIZE),
            project_id=caller.project_id,
            caller=caller.identity,
            bucket=request.bucket,
            key=request.encrypted_object_key,
            new_bucket=request.new_bucket,
            new_key=request.new_encrypted_object_key,
            expires_at=satellite.database.clock() + lifetime,
        )
    token = _open(satellite, caller, request.operation_id, kind)
    same = (token.bucket, token.key) == (request.bucket, request.encrypted_object_key)
    if not same:
        raise InvalidInput("the operation id belongs to another source")
    _require_same_target(token, request)
    _require_same_override(token, request)
    return token


def _open(
    satellite: Satellite,
    caller: Caller,
    operation_id: bytes,
    kind: tokens.OperationToken.Kind | None,
) -> tokens.OperationToken:
    token = satellite.signer.open(tokens.OperationToken, operation_id, "operation id")
    if token.project_id != caller.project_id or token.caller != caller.identity:
        raise PermissionDenied("the operation was begun by another caller")
    if kind is not None and token.kind != kind:
        raise InvalidInput("the operation id belongs to another kind of operation")
    return token


def _open_to_finish(
    satellite: Satellite, caller: Caller, request: FinishRequest, kind: tokens.OperationToken.Kind
) -> tokens.OperationToken:
    """The operation, if the request is what it began as; rights may have changed since."""
    token = _open(satellite, caller, request.operation_id, kind)
    _require_same_target(token, request)
    if request.stream_id and request.stream_id != token.stream_id:
        raise InvalidInput("the operation id belongs to another stream")
    _require_same_override(token, request)
    _authorise(caller, token)
    return token


def _require_same_target(
    token: tokens.OperationToken, request: BeginRequest | FinishRequest
) -> None:
    if not request.new_bucket:
        raise InvalidInput("new bucket is missing")
    if not request.new_encrypted_object_key:
        raise InvalidInput("new encrypted object key is missing")
    given = (request.new_bucket, request.new_encrypted_object_key)
    if given != (token.new_bucket, token.new_key):
        raise InvalidInput("the operation id belongs to another destination")


def _require_same_override(
    token: tokens.OperationToken, request: BeginRequest | FinishRequest
) -> None:
    # The messages of a move have no such field.
    if getattr(request, "override_metadata", False) != token.override_metadata:
        raise InvalidInput("override_metadata differs from what the operation began with")


def _authorise(caller: Caller, token: tokens.OperationToken) -> None:
    caller.require(Action.READ, token.bucket, token.key, "source")
    if token.kind == MOVE:
        caller.require(Action.DELETE, token.bucket, token.key, "source")
    caller.require(Action.WRITE, token.new_bucket, token.new_key, "destination")


def _page(
    satellite: Satellite, caller: Caller, request: BeginRequest, token: tokens.OperationToken
) -> CopyPage:
    asked = BeginCopy(
        caller.location(token.bucket, token.key),
        caller.location(token.new_bucket, token.new_key),
        token.stream_id or None,
        messages.to_position(request.cursor) if request.HasField("cursor") else None,
        page_limit(request.limit, verify.MAX_KEYS_PER_CALL),
    )
    page = begin_copy(satellite.database, asked)
    token.stream_id = page.source.stream_id
    return page


def _answer(satellite: Satellite, token: tokens.OperationToken, page: CopyPage) -> dict[str, Any]:
    """The fields that the answers of both Begins share."""
    return {
        "stream_id": page.source.stream_id,
        "encrypted_metadata_key_nonce": page.source.encrypted_metadata_nonce or b"",
        "encrypted_metadata_key": page.source.encrypted_metadata_encrypted_key or b"",
        "segment_keys": messages.segment_keys(page.keys),
        "encryption_parameters": messages.encryption(page.source),
        "operation_id": satellite.signer.sign(token),
        "segment_count": page.source.segment_count,
        "more": page.more,
        "operation_expires_at": messages.timestamp(token.expires_at),
    }


def _operation(token: tokens.OperationToken) -> Operation:
    return Operation(token.operation_id, token.project_id, token.expires_at)
