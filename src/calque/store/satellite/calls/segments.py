"""The calls on segments."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from calque.errors import (
    FailedPrecondition,
    InvalidInput,
    PermissionDenied,
    ResourceExhausted,
)
from calque.store.metabase.accounts.get_bucket import get_bucket
from calque.store.metabase.accounts.nodes import NodeRecord
from calque.store.metabase.accounts.projects import get_project
from calque.store.metabase.model.records import (
    ROOT_PIECE_ID_SIZE,
    Position,
    Redundancy,
    new_stream_id,
)
from calque.store.metabase.objects import list_segments as listing
from calque.store.metabase.objects.commit_segment import CommitSegment, commit_segment
from calque.store.metainfo.api_key import Action
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.metainfo.pb import tokens_pb2 as tokens
from calque.store.nodes.pieces import piece_id
from calque.store.satellite.caller import Caller
from calque.store.satellite.calls import messages
from calque.store.satellite.piece_tokens import (
    LIFETIME_US,
    max_encrypted_size,
    max_open_size,
    max_piece_size,
    sign_get_token,
    sign_put_token,
)
from calque.store.satellite.satellite import Satellite, page_limit

ENCRYPTION_OVERHEAD = 1024
"""What a cipher may add to an inline segment: tags of its blocks."""


def begin(
    satellite: Satellite, caller: Caller, request: pb.SegmentBeginRequest
) -> pb.SegmentBeginResponse:
    """BeginSegment: nothing is written; the answer binds nodes and root piece id."""
    is_whole = not request.upload_id
    if is_whole:
        upload = _upload_of_whole(satellite, caller, request)
    else:
        upload = satellite.open_upload(caller, request.upload_id)
    caller.require(Action.WRITE, upload.bucket, upload.key)
    position = messages.to_position(request.position)
    scheme = satellite.settings.redundancy
    chosen, spare = satellite.choose_nodes(upload.placement, scheme)
    root_piece_id = os.urandom(ROOT_PIECE_ID_SIZE)
    limit = get_project(satellite.database, upload.project_id).limit_bytes
    most = max_encrypted_size(satellite, upload, limit)
    open_size = max_open_size(limit, most, scheme, len(chosen) + len(spare))
    size = max_piece_size(most, scheme)
    token = tokens.SegmentToken(
        upload=upload,
        position=position.encode(),
        root_piece_id=root_piece_id,
        redundancy=scheme.encode(),
        node_ids=[node.node_id for node in chosen],
        begun_at=satellite.database.clock(),
        most_encrypted=most,
        spare_ids=[node.node_id for node in spare],
        is_whole=is_whole,
    )

    def limit_of(number: int, node: NodeRecord) -> pb.PieceLimit:
        signed = sign_put_token(
            satellite, caller, root_piece_id, number, node.node_id,
            size, upload.expires_at, open_size,
        )  # fmt: skip
        return pb.PieceLimit(number=number, node=messages.node(node), token=signed)

    return pb.SegmentBeginResponse(
        segment_id=satellite.signer.sign(token),
        root_piece_id=root_piece_id,
        redundancy=messages.redundancy(scheme),
        pieces=[limit_of(number, node) for number, node in enumerate(chosen)],
        spares=[limit_of(number, node) for node in spare for number in range(len(chosen))],
        placement=upload.placement,
    )


def _upload_of_whole(
    satellite: Satellite, caller: Caller, request: pb.SegmentBeginRequest
) -> tokens.UploadToken:
    """What a pending upload would say, of an object that has none."""
    caller.require(Action.WRITE, request.bucket, request.encrypted_object_key)
    asked = messages.to_begin(
        caller.location(request.bucket, request.encrypted_object_key), request
    )
    return tokens.UploadToken(
        project_id=caller.project_id,
        bucket=request.bucket,
        key=request.encrypted_object_key,
        stream_id=new_stream_id(satellite.database.clock()),
        placement=get_bucket(satellite.database, caller.project_id, request.bucket).placement,
        encryption=asked.encryption.encode(),
        expires_at=asked.expires_at or 0,
    )


def commit(
    satellite: Satellite, caller: Caller, request: pb.SegmentCommitRequest
) -> pb.SegmentCommitResponse:
    """CommitSegment: only pieces that were offered, and enough of them."""
    token, asked = check_segment(satellite, caller, request)
    if token.is_whole:
        raise InvalidInput("the segment was begun without an upload")
    satellite.free(commit_segment(satellite.database, asked))
    close_pieces(satellite, token, request)
    return pb.SegmentCommitResponse()


def check_segment(
    satellite: Satellite, caller: Caller, request: pb.SegmentCommitRequest
) -> tuple[tokens.SegmentToken, CommitSegment]:
    """A segment on nodes as it is to be recorded, and what was said when it was begun."""
    token = satellite.signer.open(tokens.SegmentToken, request.segment_id, "segment id")
    upload = token.upload
    if upload.project_id != caller.project_id:
        raise PermissionDenied("the segment belongs to another project")
    caller.require(Action.WRITE, upload.bucket, upload.key)
    if satellite.database.clock() - token.begun_at > LIFETIME_US:
        # Its pieces may be taken for orphans from now on.
        raise FailedPrecondition("the segment was begun too long ago: begin it again")
    _check_size(request.plain_size, satellite.settings.max_segment_size)
    _check_encrypted_size(request.encrypted_size, token.most_encrypted)
    scheme = Redundancy.decode(token.redundancy)
    _check_pieces(request.pieces, token.node_ids, token.spare_ids, scheme)
    satellite.open_pieces.require_size(
        upload.project_id,
        _named_pieces(token, request),
        max_piece_size(request.encrypted_size, scheme),
    )
    staying = satellite.leave_out_leaving(
        [(piece.number, piece.node_id) for piece in request.pieces], scheme
    )
    asked = CommitSegment(
        stream_id=upload.stream_id,
        position=Position.decode(token.position),
        encrypted_key_nonce=request.encrypted_key_nonce,
        encrypted_key=request.encrypted_key,
        encrypted_size=request.encrypted_size,
        plain_size=request.plain_size,
        encrypted_etag=request.encrypted_etag or None,
        placement=upload.placement,
        begun_at=token.begun_at,
        root_piece_id=token.root_piece_id,
        redundancy=scheme,
        alias_pieces=satellite.nodes.pack(staying),
    )
    return token, asked


def close_pieces(
    satellite: Satellite, token: tokens.SegmentToken, request: pb.SegmentCommitRequest
) -> None:
    """The pieces of a segment are committed: they count for their upload from now on."""
    satellite.open_pieces.commit_segment(
        token.upload.project_id,
        token.upload.stream_id,
        _named_pieces(token, request),
        _offered_pieces(token.root_piece_id, token),
        max_piece_size(request.encrypted_size, Redundancy.decode(token.redundancy)),
    )


def make_inline(
    satellite: Satellite, caller: Caller, request: pb.SegmentMakeInlineRequest
) -> pb.SegmentMakeInlineResponse:
    """MakeInlineSegment."""
    upload = satellite.open_upload(caller, request.upload_id)
    caller.require(Action.WRITE, upload.bucket, upload.key)
    check_inline(satellite, request.plain_size, request.inline_data)
    asked = CommitSegment(
        stream_id=upload.stream_id,
        position=messages.to_position(request.position),
        encrypted_key_nonce=request.encrypted_key_nonce,
        encrypted_key=request.encrypted_key,
        encrypted_size=len(request.inline_data),
        plain_size=request.plain_size,
        encrypted_etag=request.encrypted_etag or None,
        placement=upload.placement,
        inline_data=request.inline_data,
    )
    satellite.free(commit_segment(satellite.database, asked))
    return pb.SegmentMakeInlineResponse()


def check_inline(satellite: Satellite, plain_size: int, data: bytes) -> None:
    """InvalidInput for a segment that is too large to be inline."""
    limit = satellite.settings.max_inline_size
    _check_size(plain_size, limit)
    if len(data) > limit + ENCRYPTION_OVERHEAD:
        raise InvalidInput(f"inline data has {len(data)} bytes, too many")


def list_(
    satellite: Satellite, caller: Caller, request: pb.SegmentListRequest
) -> pb.SegmentListResponse:
    """ListSegments: of an object with the right to read, of an upload with that to write."""
    if request.upload_id:
        upload = satellite.open_upload(caller, request.upload_id)
        bucket, key, stream_id = upload.bucket, upload.key, upload.stream_id
        caller.require_any((Action.WRITE, Action.READ), bucket, key)
    else:
        bucket, key, stream_id = (
            request.bucket,
            request.encrypted_object_key,
            request.stream_id,
        )
        caller.require(Action.READ, bucket, key)
    asked = listing.ListSegments(
        caller.location(bucket, key),
        stream_id or None,
        pending=bool(request.upload_id),
        cursor=messages.to_position(request.cursor) if request.HasField("cursor") else None,
        limit=page_limit(request.limit, listing.MAX_PAGE),
        range_start=request.range_start if request.HasField("range_start") else None,
        range_limit=request.range_limit if request.HasField("range_limit") else None,
    )
    page = listing.list_segments(satellite.database, asked)
    segments, nodes = messages.segments(page.segments, satellite.nodes)
    if caller.may(Action.READ, bucket, key):
        for segment in segments:
            segment.piece_tokens.extend(_sign_get_tokens(satellite, caller, segment))
    return pb.SegmentListResponse(
        object=messages.object_(page.object), segments=segments, nodes=nodes, more=page.more
    )


def _sign_get_tokens(satellite: Satellite, caller: Caller, segment: pb.Segment) -> Iterator[bytes]:
    scheme = messages.to_redundancy(segment.redundancy)
    whole = segment.origin if segment.HasField("origin") else segment
    for piece in segment.pieces:
        yield sign_get_token(
            satellite,
            caller,
            segment.root_piece_id,
            piece.number,
            piece.node_id,
            max_piece_size(whole.encrypted_size, scheme),
        )


def _check_encrypted_size(encrypted_size: int, most: int) -> None:
    if encrypted_size < 0:
        raise InvalidInput(f"a segment of {encrypted_size} encrypted bytes")
    if encrypted_size > most:
        raise ResourceExhausted(
            f"a segment of {encrypted_size} encrypted bytes, the limit is {most}",
            hint="Use smaller segments, or raise the project's limit.",
        )


def _check_size(plain_size: int, limit: int) -> None:
    if not 0 <= plain_size <= limit:
        raise InvalidInput(f"a segment of {plain_size} bytes, the limit is {limit}")


def _named_pieces(token: tokens.SegmentToken, request: pb.SegmentCommitRequest) -> Iterator[bytes]:
    for each in request.pieces:
        yield piece_id(token.root_piece_id, each.node_id, each.number)


def _offered_pieces(root: bytes, token: tokens.SegmentToken) -> Iterator[bytes]:
    for number, node_id in enumerate(token.node_ids):
        for each in (node_id, *token.spare_ids):
            yield piece_id(root, each, number)


def _check_pieces(
    pieces: Sequence[pb.Piece], offered: Sequence[bytes], spare: Sequence[bytes], scheme: Redundancy
) -> None:
    if len({piece.number for piece in pieces}) != len(pieces):
        raise InvalidInput("a piece number comes twice")
    for piece in pieces:
        known = 0 <= piece.number < len(offered)
        if not known or piece.node_id not in (offered[piece.number], *spare):
            raise InvalidInput(f"piece {piece.number} was not offered to that node")
    if len({piece.node_id for piece in pieces}) != len(pieces):
        raise InvalidInput("a node comes twice: it would lose two pieces at once")
    if len(pieces) < min(scheme.success, len(offered)):
        raise InvalidInput(f"{len(pieces)} pieces were stored, a segment needs {scheme.success}")
