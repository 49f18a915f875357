"""The calls of the service, in process and over gRPC, on both databases."""

from __future__ import annotations

import os

import pytest

from calque.errors import (
    AlreadyExists,
    CalqueError,
    ConditionNotMatch,
    FailedPrecondition,
    InvalidInput,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    Unexpected,
)
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.metainfo.service import CALLS
from tests.store.conftest import SatelliteUnderTest
from tests.store.uplinkish import AES, rewrapped
from tests.store.world import HOUR_US


def test_upload_list_download_delete(satellite: SatelliteUnderTest) -> None:
    """The life of an object: pieces name their nodes, and are freed once."""
    client = satellite.client
    upload_id = client.begin(b"a").upload_id
    root = client.remote(upload_id, 0)
    client.inline(upload_id, 1, b"tail")
    committed = client.commit(upload_id)
    assert (committed.segment_count, committed.total_plain_size) == (2, 104)
    page = client.segments(b"a")
    assert page.object == committed == client.get(b"a")
    remote, inline = page.segments
    assert remote.root_piece_id == root
    assert {piece.node_id for piece in remote.pieces} == {node.id for node in page.nodes}
    assert all(node.address.startswith("memory:///") for node in page.nodes)
    assert (inline.inline, inline.inline_data, inline.plain_offset) == (True, b"tail", 100)
    assert client.keys() == [b"a"]
    assert client.delete(b"a").deleted
    assert not client.delete(b"a").deleted
    (freed,) = satellite.freed
    assert freed.root_piece_id == root
    assert {node_id for _, node_id, _ in freed.pieces} == {node.id for node in page.nodes}


def test_copy_and_move(satellite: SatelliteUnderTest) -> None:
    """A copy lists the pieces of its ancestor; a move keeps the stream."""
    client = satellite.client
    source = client.upload(b"a", 3)
    copy = client.copy(b"a", b"b", new_bucket="second")
    assert copy.bucket == "second"
    original = client.segments(b"a").segments
    copied = client.segments(b"b", "second").segments
    assert [each.pieces for each in copied] == [each.pieces for each in original]
    assert [each.redundancy for each in copied] == [each.redundancy for each in original]
    moved = client.move(b"a", b"c")
    assert moved.stream_id == source.stream_id
    client.delete(b"c")
    assert satellite.freed == []
    assert [each.pieces for each in client.segments(b"b", "second").segments] == [
        each.pieces for each in original
    ]


def test_begin_returns_what_the_client_needs(satellite: SatelliteUnderTest) -> None:
    """Keys, nonces, positions, parameters and the operation id."""
    client = satellite.client
    source = client.upload(b"a", 2)
    begun = client.begin_copy(b"a", b"b")
    segments = client.segments(b"a").segments
    assert begun.stream_id == source.stream_id
    assert begun.encryption_parameters == AES
    assert begun.segment_count == 2
    assert [
        (key.position, key.encrypted_key_nonce, key.encrypted_key) for key in begun.segment_keys
    ] == [(each.position, each.encrypted_key_nonce, each.encrypted_key) for each in segments]


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("operation_id", b"", InvalidInput),
        ("operation_id", b"x" * 100, InvalidInput),
        ("new_bucket", "", InvalidInput),
        ("new_bucket", "second", InvalidInput),
        ("new_encrypted_object_key", b"", InvalidInput),
        ("new_encrypted_object_key", b"c", InvalidInput),
        ("override_metadata", True, InvalidInput),
        ("new_encrypted_metadata", b"data", InvalidInput),
        ("new_encrypted_metadata_key", b"k" * 48, InvalidInput),
        ("new_encrypted_metadata_key_nonce", b"n" * 12, InvalidInput),
        ("stream_id", b"s" * 16, InvalidInput),
    ],
)
def test_finish_of_something_else(
    satellite: SatelliteUnderTest, field: str, value: object, error: type[CalqueError]
) -> None:
    """An operation id binds source, destination and override flag; all else is refused."""
    client = satellite.client
    client.upload(b"a")
    request = client.finishing(client.begin_copy(b"a", b"b"), b"b")
    setattr(request, field, value)
    with pytest.raises(error):
        client.satellite.finish_copy_object(request)
    assert client.keys() == [b"a"]
    assert client.keys(bucket="second") == []


def test_a_tampered_operation_id(satellite: SatelliteUnderTest) -> None:
    """Flipping any byte makes it invalid."""
    client = satellite.client
    client.upload(b"a")
    request = client.finishing(client.begin_copy(b"a", b"b"), b"b")
    for at in (0, 15, 16, 40, len(request.operation_id) - 1):
        damaged = bytearray(request.operation_id)
        damaged[at] ^= 1
        bad = pb.ObjectFinishCopyRequest()
        bad.CopyFrom(request)
        bad.operation_id = bytes(damaged)
        with pytest.raises(InvalidInput, match="operation id"):
            client.satellite.finish_copy_object(bad)


def test_an_operation_of_another_caller(satellite: SatelliteUnderTest) -> None:
    """Another key, even of the same project, cannot finish it; another project's neither."""
    client = satellite.client
    client.upload(b"a")
    request = client.finishing(client.begin_copy(b"a", b"b"), b"b")
    admin = satellite.endpoint.admin
    other = admin.create_project("other")
    for key in (client.api_key.restrict(not_after=2**55), admin.create_api_key(other.id)):
        request.header.api_key = bytes(key)
        with pytest.raises(PermissionDenied, match="another caller"):
            client.satellite.finish_copy_object(request)


def test_a_copy_id_does_not_finish_a_move(satellite: SatelliteUnderTest) -> None:
    """Operation ids of one kind are not taken for the other; upload ids neither."""
    client = satellite.client
    client.upload(b"a")
    begun = client.begin_copy(b"a", b"b")
    request = pb.ObjectFinishMoveRequest(
        header=client.header,
        operation_id=begun.operation_id,
        new_bucket="first",
        new_encrypted_object_key=b"b",
    )
    with pytest.raises(InvalidInput, match="another kind"):
        client.satellite.finish_move_object(request)
    request.operation_id = client.begin(b"z").upload_id
    with pytest.raises(InvalidInput, match="not given out"):
        client.satellite.finish_move_object(request)


def test_repeated_finish(satellite: SatelliteUnderTest) -> None:
    """The same Finish again returns the same object, no second version."""
    client = satellite.client
    client.upload(b"a")
    request = client.finishing(client.begin_copy(b"a", b"b"), b"b")
    first = client.satellite.finish_copy_object(request)
    assert client.satellite.finish_copy_object(request) == first


def test_source_gone_between_begin_and_finish(satellite: SatelliteUnderTest) -> None:
    """FailedPrecondition, the very class, over both ways."""
    client = satellite.client
    client.upload(b"a")
    request = client.finishing(client.begin_copy(b"a", b"b"), b"b")
    client.delete(b"a")
    with pytest.raises(FailedPrecondition, match="deleted"):
        client.satellite.finish_copy_object(request)


def test_conditions(satellite: SatelliteUnderTest, clock: object) -> None:
    """Conditions on both sides, each with its own error."""
    client = satellite.client
    source = client.upload(b"a")
    client.upload(b"b")
    for conditions, error in (
        (pb.CopyConditions(if_not_exists=True), AlreadyExists),
        (pb.CopyConditions(if_match_stream_id=b"x" * 16), ConditionNotMatch),
        (pb.CopyConditions(source_if_match_stream_id=b"x" * 16), ConditionNotMatch),
        (pb.CopyConditions(if_match_stream_id=b"short"), InvalidInput),
    ):
        request = client.finishing(client.begin_copy(b"a", b"b"), b"b")
        request.conditions.CopyFrom(conditions)
        with pytest.raises(error):
            client.satellite.finish_copy_object(request)
    late = client.finishing(client.begin_copy(b"a", b"b"), b"b")
    late.conditions.source_if_unmodified_since.FromMicroseconds(
        source.created_at.ToMicroseconds() - 1
    )
    with pytest.raises(ConditionNotMatch, match="modified"):
        client.satellite.finish_copy_object(late)


def test_a_long_copy_resumes(satellite: SatelliteUnderTest) -> None:
    """Begin pages, Finish takes parts, GetOperation tells how far it came."""
    client = satellite.client
    client.upload(b"a", 5)
    begun = client.begin_copy(b"a", b"b", limit=2)
    assert begun.more
    part = client.finishing(begun, b"b")
    part.partial = True
    assert client.satellite.finish_copy_object(part).keys_received == 2
    progress = client.satellite.get_operation(
        pb.OperationGetRequest(header=client.header, operation_id=begun.operation_id)
    )
    assert (progress.keys_received, progress.last_position.index) == (2, 1)
    rest = client.begin_copy(
        b"a", b"b", operation_id=begun.operation_id, cursor=progress.last_position
    )
    assert [key.position.index for key in rest.segment_keys] == [2, 3, 4]
    last = client.finishing(rest, b"b")
    assert client.satellite.finish_copy_object(last).object.segment_count == 5
    assert client.satellite.get_operation(
        pb.OperationGetRequest(header=client.header, operation_id=begun.operation_id)
    ).finished


def test_every_call_refuses_an_empty_message(satellite: SatelliteUnderTest) -> None:
    """Without a key it is denied; with a key but no fields it is invalid or not found."""
    client = satellite.client
    harmless = {"GetProject", "ListBuckets"}
    for name, call in CALLS.items():
        with pytest.raises(PermissionDenied, match="API key is missing"):
            client.satellite.call(name, call.request())
        if name not in harmless:
            with pytest.raises((InvalidInput, NotFound, PermissionDenied)):
                client.satellite.call(name, call.request(header=client.header))  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (pb.ObjectGetRequest(bucket="a\0b", encrypted_object_key=b"k"), InvalidInput),
        (pb.ObjectListRequest(bucket="first", limit=-1), InvalidInput),
        (pb.BucketListRequest(limit=-1), InvalidInput),
        (pb.ObjectListRequest(bucket="first", status=2), InvalidInput),
        (pb.BucketCreateRequest(name="first"), AlreadyExists),
        (pb.BucketCreateRequest(name="ok1", placement=-1), InvalidInput),
        (pb.BucketGetRequest(name="nowhere"), NotFound),
        (pb.SegmentListRequest(bucket="first", encrypted_object_key=b"none"), NotFound),
        (
            pb.SegmentListRequest(
                bucket="first", encrypted_object_key=b"k", range_start=9, range_limit=3
            ),
            InvalidInput,
        ),
        (
            pb.ObjectBeginRequest(bucket="first", encrypted_object_key=b"k"),
            InvalidInput,
        ),
    ],
)
def test_malformed_fields(
    satellite: SatelliteUnderTest, request_: object, error: type[CalqueError]
) -> None:
    """A client's mistake has its own error and is never Internal."""
    client = satellite.client
    name = next(name for name, call in CALLS.items() if call.request is type(request_))
    request_.header.CopyFrom(client.header)  # type: ignore[attr-defined]
    with pytest.raises(error) as caught:
        client.satellite.call(name, request_)  # type: ignore[arg-type]
    assert not isinstance(caught.value, Unexpected)


@pytest.mark.parametrize("seconds", [-1, 2**62])
def test_times_out_of_range(satellite: SatelliteUnderTest, seconds: int) -> None:
    """An expiry before 1970 or after 9999 is invalid."""
    client = satellite.client
    request = pb.ObjectBeginRequest(
        header=client.header,
        bucket="first",
        encrypted_object_key=b"k",
        encryption_parameters=AES,
    )
    request.expires_at.seconds = seconds
    with pytest.raises(InvalidInput, match="expires_at"):
        client.satellite.begin_object(request)


def test_pieces_that_were_not_offered(satellite: SatelliteUnderTest) -> None:
    """Only offered pieces count, each once, and the success threshold must be met."""
    client = satellite.client
    upload_id = client.begin(b"a").upload_id
    begun = client.satellite.begin_segment(
        pb.SegmentBeginRequest(
            header=client.header, upload_id=upload_id, position=pb.SegmentPosition()
        )
    )
    good = [pb.Piece(number=each.number, node_id=each.node.id) for each in begun.pieces]
    for pieces, named in (
        ([], "0 pieces"),
        (good[:1], "1 pieces"),
        ([good[0], good[0], good[1]], "twice"),
        ([pb.Piece(number=0, node_id=good[1].node_id), *good[1:]], "not offered"),
        ([pb.Piece(number=9, node_id=good[1].node_id), *good], "not offered"),
        ([pb.Piece(number=0, node_id=os.urandom(32)), *good[1:]], "not offered"),
        ([pb.Piece(number=-1, node_id=good[1].node_id), *good], "not offered"),
    ):
        request = pb.SegmentCommitRequest(
            header=client.header,
            segment_id=begun.segment_id,
            encrypted_key_nonce=os.urandom(12),
            encrypted_key=os.urandom(48),
            encrypted_size=116,
            plain_size=100,
            pieces=pieces,
        )
        with pytest.raises(InvalidInput, match=named):
            client.satellite.commit_segment(request)
    request.ClearField("pieces")
    request.pieces.extend(good[1:])
    client.satellite.commit_segment(request)
    client.commit(upload_id)


def test_segments_beyond_the_limits(satellite: SatelliteUnderTest) -> None:
    """Segments and inline data have a largest size."""
    client = satellite.client
    upload_id = client.begin(b"a").upload_id
    with pytest.raises(InvalidInput, match="limit is 4096"):
        client.inline(upload_id, 0, b"x" * 4097)
    with pytest.raises(InvalidInput, match="limit is"):
        client.remote(upload_id, 0, size=65 * 1024 * 1024)
    client.inline(upload_id, 0, b"x" * 4096)


def test_messages_beyond_the_limit(satellite: SatelliteUnderTest) -> None:
    """A message too large is refused before anything is done."""
    client = satellite.client
    with pytest.raises(ResourceExhausted):
        client.satellite.get_object(
            pb.ObjectGetRequest(
                header=client.header,
                bucket="first",
                encrypted_object_key=b"k" * (9 * 1024 * 1024),
            )
        )


def test_pending_uploads_can_be_found_and_aborted(satellite: SatelliteUnderTest) -> None:
    """A listing of uploads gives the ids to go on with or abort."""
    client = satellite.client
    upload_id = client.begin(b"a").upload_id
    client.remote(upload_id, 0)
    page = client.satellite.list_objects(
        pb.ObjectListRequest(
            header=client.header, bucket="first", recursive=True, status=pb.STATUS_PENDING
        )
    )
    (item,) = page.items
    listed = client.segments(b"", upload_id=item.object.upload_id).segments
    assert [each.position.index for each in listed] == [0]
    client.satellite.abort_object(
        pb.ObjectAbortRequest(header=client.header, upload_id=item.object.upload_id)
    )
    assert len(satellite.freed) == 1
    with pytest.raises(NotFound):
        client.commit(upload_id)


def test_update_metadata(satellite: SatelliteUnderTest) -> None:
    """Metadata is replaced for exactly the named stream."""
    client = satellite.client
    record = client.upload(b"a")
    request = pb.ObjectUpdateMetadataRequest(
        header=client.header,
        bucket="first",
        encrypted_object_key=b"a",
        stream_id=record.stream_id,
        encrypted_metadata_nonce=b"n" * 12,
        encrypted_metadata=b"m",
        encrypted_metadata_encrypted_key=b"k" * 48,
    )
    assert client.satellite.update_object_metadata(request).object.encrypted_metadata == b"m"
    request.stream_id = b"x" * 16
    with pytest.raises(FailedPrecondition):
        client.satellite.update_object_metadata(request)


def test_metadata_directive_over_the_service(satellite: SatelliteUnderTest) -> None:
    """Copy re-wraps, replace replaces; the flag is bound at Begin."""
    client = satellite.client
    upload_id = client.begin(b"a").upload_id
    client.commit(
        upload_id,
        override_metadata=True,
        encrypted_metadata_nonce=b"n" * 12,
        encrypted_metadata=b"old",
        encrypted_metadata_encrypted_key=b"k" * 48,
    )
    begun = client.begin_copy(b"a", b"b")
    assert begun.encrypted_metadata_key == b"k" * 48
    request = client.finishing(begun, b"b")
    request.new_encrypted_metadata_key = b"K" * 48
    request.new_encrypted_metadata_key_nonce = b"N" * 12
    copy = client.satellite.finish_copy_object(request).object
    assert (copy.encrypted_metadata, copy.encrypted_metadata_encrypted_key) == (b"old", b"K" * 48)
    request = client.finishing(client.begin_copy(b"a", b"c", override_metadata=True), b"c")
    request.override_metadata = True
    request.new_encrypted_metadata = b"new"
    request.new_encrypted_metadata_key = b"K" * 48
    request.new_encrypted_metadata_key_nonce = b"N" * 12
    assert client.satellite.finish_copy_object(request).object.encrypted_metadata == b"new"


def test_delete_bucket_with_everything(satellite: SatelliteUnderTest) -> None:
    """Everything in it goes and every piece is freed; copies elsewhere stay."""
    client = satellite.client
    client.upload(b"a", 2)
    client.upload(b"b", 1)
    client.copy(b"a", b"c", new_bucket="second")
    with pytest.raises(FailedPrecondition, match="not empty"):
        client.satellite.delete_bucket(pb.BucketDeleteRequest(header=client.header, name="first"))
    done = client.satellite.delete_bucket(
        pb.BucketDeleteRequest(header=client.header, name="first", delete_all=True)
    )
    assert done.deleted_objects == 2
    assert len(satellite.freed) == 1
    assert len(client.segments(b"c", "second").segments) == 2


def test_operation_expires(satellite: SatelliteUnderTest, clock: object) -> None:
    """After its time an operation cannot be finished."""
    client = satellite.client
    client.upload(b"a")
    request = client.finishing(client.begin_copy(b"a", b"b"), b"b")
    clock.advance(25 * HOUR_US)  # type: ignore[attr-defined]
    with pytest.raises(FailedPrecondition, match="time"):
        client.satellite.finish_copy_object(request)


def test_keys_may_come_in_any_order(satellite: SatelliteUnderTest) -> None:
    """The satellite sorts the keys of a Finish itself."""
    client = satellite.client
    client.upload(b"a", 3)
    begun = client.begin_copy(b"a", b"b")
    request = client.finishing(begun, b"b")
    backwards = rewrapped(begun.segment_keys)[::-1]
    request.ClearField("new_segment_keys")
    request.new_segment_keys.extend(backwards)
    client.satellite.finish_copy_object(request)
    stored = client.segments(b"b").segments
    assert [each.encrypted_key for each in stored] == [
        each.encrypted_key for each in backwards[::-1]
    ]


def test_millions_of_empty_keys(satellite: SatelliteUnderTest) -> None:
    """A message full of nothing is refused by its count, before anything is made of it."""
    client = satellite.client
    client.upload(b"a")
    request = client.finishing(client.begin_copy(b"a", b"b"), b"b")
    field = request.DESCRIPTOR.fields_by_name["new_segment_keys"].number
    empty = bytes([field << 3 | 2, 0])
    flood = pb.ObjectFinishCopyRequest.FromString(request.SerializeToString() + empty * 300_000)
    with pytest.raises(InvalidInput, match="300001 segment keys in one call"):
        client.satellite.finish_copy_object(flood)
    assert client.keys() == [b"a"]


def test_a_late_repeat_of_a_segment(satellite: SatelliteUnderTest) -> None:
    """A commit repeated after its segment was replaced does not bring freed pieces back."""
    client = satellite.client
    upload_id = client.begin(b"a").upload_id

    def committing() -> pb.SegmentCommitRequest:
        begun = client.satellite.begin_segment(
            pb.SegmentBeginRequest(header=client.header, upload_id=upload_id)
        )
        return pb.SegmentCommitRequest(
            header=client.header,
            segment_id=begun.segment_id,
            encrypted_key_nonce=b"n" * 12,
            encrypted_key=b"k" * 48,
            encrypted_size=116,
            plain_size=100,
            pieces=[pb.Piece(number=each.number, node_id=each.node.id) for each in begun.pieces],
        )

    first = committing()
    client.satellite.commit_segment(first)
    second = committing()
    client.satellite.commit_segment(first)  # an answer that was lost: nothing is newer for it
    for _ in range(2):
        client.satellite.commit_segment(second)
        with pytest.raises(FailedPrecondition, match="committed at this position"):
            client.satellite.commit_segment(first)
    client.inline(upload_id, 0, b"short")
    with pytest.raises(FailedPrecondition):
        client.satellite.commit_segment(second)
    client.satellite.commit_segment(committing())
    client.commit(upload_id)
    (segment,) = client.segments(b"a").segments
    freed = [each.root_piece_id for each in satellite.freed]
    assert len(freed) == len(set(freed)) == 2
    assert segment.root_piece_id not in freed
