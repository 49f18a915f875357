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
from tests.store.uplinkish import AES


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
