"""The calls that copy and move everything below a prefix."""

from __future__ import annotations

import os
from typing import cast

from calque.errors import InvalidInput, PermissionDenied
from calque.store.metabase.copies.finish_prefix import finish_prefix
from calque.store.metabase.copies.operations import OPERATION_ID_SIZE, Operation
from calque.store.metabase.copies.stage_prefix import (
    MAX_PAGE,
    Prefix,
    PrefixEntry,
    PrefixOperation,
    StagedObject,
    prefix_page,
    stage_prefix,
)
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.packed_keys import PackedKeys
from calque.store.metabase.model.records import Encryption
from calque.store.metainfo.api_key import Action
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.metainfo.pb import tokens_pb2 as tokens
from calque.store.satellite.caller import Caller
from calque.store.satellite.calls import messages
from calque.store.satellite.satellite import Satellite, page_limit

COPY = tokens.OperationToken.COPY_PREFIX
MOVE = tokens.OperationToken.MOVE_PREFIX


def begin(
    satellite: Satellite, caller: Caller, request: pb.PrefixBeginRequest
) -> pb.PrefixBeginResponse:
    """BeginPrefix: a page of what is to be re-wrapped; the operation id binds everything."""
    if request.operation_id:
        token = _open(satellite, caller, request.operation_id)
    else:
        token = _new_token(satellite, caller, request)
        _authorise(caller, token)
    asked = _operation(token)
    # Without a cursor a later call goes on behind what was staged.
    cursor = request.cursor or None
    page = prefix_page(satellite.database, asked, cursor, page_limit(request.limit, MAX_PAGE))
    size = len(asked.source.encrypted)
    return pb.PrefixBeginResponse(
        operation_id=satellite.signer.sign(token),
        entries=[_entry(each, size) for each in page.entries],
        more=page.more,
        staged=page.staged,
        finished=page.finished,
    )


def stage(
    satellite: Satellite, caller: Caller, request: pb.PrefixStageRequest
) -> pb.PrefixStageResponse:
    """StagePrefix."""
    token = _open(satellite, caller, request.operation_id)
    if len(request.entries) > MAX_PAGE:
        raise InvalidInput(f"{len(request.entries)} objects in one call, the limit is {MAX_PAGE}")
    verify.key_count(sum(len(each.segment_keys) for each in request.entries))
    staged = [_staged(each, token.new_key) for each in request.entries]
    count = stage_prefix(satellite.database, _operation(token), staged)
    return pb.PrefixStageResponse(staged=count)


def finish(
    satellite: Satellite, caller: Caller, request: pb.PrefixFinishRequest
) -> pb.PrefixFinishResponse:
    """FinishPrefix: one transaction, authorised again for source and destination."""
    token = _open(satellite, caller, request.operation_id)
    asked = _operation(token)
    may_overwrite = caller.may(Action.DELETE, token.new_bucket, token.new_key)
    done = finish_prefix(satellite.database, asked, may_overwrite=may_overwrite)
    satellite.free(done.freed)
    existing = (done.existing or b"")[len(token.new_key) :]
    return pb.PrefixFinishResponse(objects=done.objects, existing_key=existing)


def _new_token(
    satellite: Satellite, caller: Caller, request: pb.PrefixBeginRequest
) -> tokens.OperationToken:
    lifetime = int(satellite.settings.operation_lifetime_s * 1_000_000)
    return tokens.OperationToken(
        kind=MOVE if request.move else COPY,
        operation_id=os.urandom(OPERATION_ID_SIZE),
        project_id=caller.project_id,
        caller=caller.identity,
        bucket=request.bucket,
        key=request.encrypted_prefix,
        new_bucket=request.new_bucket,
        new_key=request.new_encrypted_prefix,
        override_metadata=request.overwrite,
        expires_at=satellite.database.clock() + lifetime,
    )


def _open(satellite: Satellite, caller: Caller, operation_id: bytes) -> tokens.OperationToken:
    """The operation, if it is the caller's; rights may have changed since it began."""
    token = satellite.signer.open(tokens.OperationToken, operation_id, "operation id")
    if token.project_id != caller.project_id or token.caller != caller.identity:
        raise PermissionDenied("the operation was begun by another caller")
    if token.kind not in (COPY, MOVE):
        raise InvalidInput("the operation id belongs to another kind of operation")
    _authorise(caller, token)
    return token


def _authorise(caller: Caller, token: tokens.OperationToken) -> None:
    caller.require(Action.READ, token.bucket, token.key, "source")
    caller.require(Action.LIST, token.bucket, token.key, "source")
    if token.kind == MOVE:
        caller.require(Action.DELETE, token.bucket, token.key, "source")
    caller.require(Action.WRITE, token.new_bucket, token.new_key, "destination")
    if token.override_metadata:
        caller.require(Action.DELETE, token.new_bucket, token.new_key, "destination")


def _operation(token: tokens.OperationToken) -> PrefixOperation:
    return PrefixOperation(
        Operation(token.operation_id, token.project_id, token.expires_at),
        Prefix(token.project_id, token.bucket, token.key),
        Prefix(token.project_id, token.new_bucket, token.new_key),
        move=token.kind == MOVE,
        overwrite=token.override_metadata,
    )


def _entry(entry: PrefixEntry, prefix_size: int) -> pb.PrefixEntry:
    record = entry.object
    return pb.PrefixEntry(
        encrypted_object_key=record.object_key[prefix_size:],
        stream_id=record.stream_id,
        cipher_suite=cast(pb.CipherSuite, Encryption.decode(record.encryption).cipher),
        encrypted_metadata_key_nonce=record.metadata_nonce or b"",
        encrypted_metadata_key=record.metadata_key or b"",
        segment_keys=messages.segment_keys(entry.keys),
        plain_size=record.plain_size,
    )


def _staged(entry: pb.PrefixEntry, prefix: bytes) -> StagedObject:
    return StagedObject(
        entry.stream_id,
        prefix + entry.encrypted_object_key,
        entry.seen_metadata_key or None,
        entry.encrypted_metadata_key_nonce or None,
        entry.encrypted_metadata_key or None,
        PackedKeys.of(messages.to_segment_keys(entry.segment_keys)),
    )
