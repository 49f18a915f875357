"""The calls that copy and move, in process and over gRPC, on both databases."""

from __future__ import annotations

import pytest

from calque.errors import (
    CalqueError,
    FailedPrecondition,
    InvalidInput,
    PermissionDenied,
)
from calque.store.metainfo.pb import metainfo_pb2 as pb
from tests.store.conftest import SatelliteUnderTest
from tests.store.uplinkish import AES, rewrapped
from tests.store.world import HOUR_US


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
