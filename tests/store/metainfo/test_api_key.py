"""API keys: attenuated offline, checked by the satellite for source and destination."""

from __future__ import annotations

import dataclasses
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.errors import InvalidInput, PermissionDenied, RateLimited
from calque.store.metainfo import Action, AllowedPath, ApiKey
from calque.store.metainfo.api_key import MAX_CAVEATS, Restriction
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.metainfo.pb import tokens_pb2 as tokens
from calque.store.satellite import Endpoint, SatelliteSettings
from calque.store.satellite.rate_limit import RateLimit
from tests.store.conftest import SatelliteUnderTest
from tests.store.uplinkish import Client
from tests.store.world import HOUR_US, Clock

SECRET = b"s" * 32


def _inside(*places: tuple[str, bytes]) -> list[AllowedPath]:
    return [AllowedPath(bucket, prefix) for bucket, prefix in places]


def test_bytes_round_trip() -> None:
    """A key survives its serialised form, and repr shows nothing of it."""
    key = ApiKey.create(SECRET).restrict(actions=[Action.READ])
    assert ApiKey.parse(bytes(key)) == key
    assert key.tail.hex() not in repr(key)
    assert pickle.loads(pickle.dumps(key)) == key


@pytest.mark.parametrize("data", [b"", b"!!!", b"AAAA", b"A" * 100_000])
def test_bytes_that_are_no_key(data: bytes) -> None:
    """What cannot be a key is denied, not crashed on."""
    with pytest.raises(PermissionDenied):
        ApiKey.parse(data)


@given(st.binary(max_size=300))
def test_any_bytes_are_denied_or_parsed(data: bytes) -> None:
    """No bytes make the parser fail in another way."""
    try:
        key = ApiKey.parse(data)
    except PermissionDenied:
        return
    with pytest.raises(PermissionDenied):
        key.tails(SECRET)


def test_a_restriction_cannot_be_taken_away() -> None:
    """Dropping, changing or swapping caveats breaks the chain."""
    key = (
        ApiKey.create(SECRET)
        .restrict(actions=[Action.READ])
        .restrict(paths=_inside(("first", b"")))
    )
    assert len(key.tails(SECRET)) == 3
    for caveats in (key.caveats[:1], key.caveats[1:], (), key.caveats[::-1]):
        with pytest.raises(PermissionDenied):
            dataclasses.replace(key, caveats=caveats).tails(SECRET)
    with pytest.raises(PermissionDenied):
        key.tails(b"other secret")


def test_unknown_restrictions_are_not_ignored() -> None:
    """A caveat with a field or an action of a later release denies."""
    root = ApiKey.create(SECRET)
    for caveat in (
        tokens.Caveat(operations=[99]).SerializeToString(),
        tokens.Caveat().SerializeToString() + b"\xc2\x3e\x01x",
        b"\x12\x0b" + tokens.Path(bucket="first").SerializeToString() + b"\xc2\x3e\x01x",
    ):
        key = dataclasses.replace(root, caveats=(caveat,))
        with pytest.raises(PermissionDenied, match="does not know"):
            key.restrictions()


def test_too_many_restrictions() -> None:
    """A key cannot be lengthened without end."""
    key = ApiKey.create(SECRET)
    for _ in range(MAX_CAVEATS + 1):
        key = key.restrict(not_after=1)
    with pytest.raises(PermissionDenied, match="more than"):
        ApiKey.parse(bytes(key))


def test_empty_restrictions_are_refused() -> None:
    """A restriction to nothing is a mistake."""
    with pytest.raises(InvalidInput):
        ApiKey.create(SECRET).restrict(actions=[])
    with pytest.raises(InvalidInput):
        ApiKey.create(SECRET).restrict(paths=[])
    with pytest.raises(InvalidInput, match="1970"):  # zero would mean: without an end
        ApiKey.create(SECRET).restrict(not_after=0)


@pytest.mark.parametrize(
    ("prefix", "key", "covered"),
    [
        (b"", b"anything", True),
        (b"a", b"a", False),
        (b"a/", b"a", False),
        (b"a", b"a/", True),
        (b"a", b"a/b", True),
        (b"a/", b"a/b", True),
        (b"a//", b"a/b", False),
        (b"a//", b"a//b", True),
        (b"/", b"a", False),
        (b"a", b"ab", False),
        (b"a", b"b", False),
        (b"a/b", b"a", False),
    ],
)
def test_prefixes_end_at_components(prefix: bytes, key: bytes, covered: bool) -> None:
    """A prefix covers what lies below whole components, not the object of its own name."""
    assert AllowedPath("first", prefix).covers("first", key) is covered
    assert not AllowedPath("first", prefix).covers("second", key)


def test_copy_needs_read_on_source_and_write_on_destination(
    satellite: SatelliteUnderTest,
) -> None:
    """No read right on the source, or no write right on the destination: denied."""
    client = satellite.client
    client.upload(b"a")
    for actions in ([Action.WRITE, Action.DELETE], [Action.READ, Action.DELETE], [Action.LIST]):
        with pytest.raises(PermissionDenied):
            client.restricted(actions=actions).begin_copy(b"a", b"b")
    client.restricted(actions=[Action.READ, Action.WRITE]).copy(b"a", b"b")


def test_prefix_limited_grants(satellite: SatelliteUnderTest) -> None:
    """Inside to inside passes, inside to outside and outside to inside are denied."""
    client = satellite.client
    client.upload(b"in/a")
    client.upload(b"out/a")
    limited = client.restricted(paths=_inside(("first", b"in")))
    limited.copy(b"in/a", b"in/b")
    for source, target in ((b"in/a", b"out/b"), (b"out/a", b"in/c"), (b"in/a", b"inner/c")):
        with pytest.raises(PermissionDenied):
            limited.begin_copy(source, target)
    with pytest.raises(PermissionDenied):
        limited.begin_copy(b"in/a", b"in/b", new_bucket="second")
    with pytest.raises(PermissionDenied):
        limited.keys()
    assert limited.keys(b"in/") == [b"a", b"b"]
    assert client.keys() == [b"in/a", b"in/b", b"out/a"]


def test_finish_is_authorised_again(satellite: SatelliteUnderTest, clock: Clock) -> None:
    """A key that has run out between Begin and Finish is denied at Finish."""
    client = satellite.client
    client.upload(b"a")
    short = client.restricted(not_after=clock() + HOUR_US)
    request = short.finishing(short.begin_copy(b"a", b"b"), b"b")
    clock.advance(2 * HOUR_US)
    with pytest.raises(PermissionDenied, match="not valid at this time"):
        client.satellite.finish_copy_object(request)
    assert client.keys() == [b"a"]


def test_write_without_delete_may_not_overwrite(satellite: SatelliteUnderTest) -> None:
    """Copies, uploads, moves and metadata: whatever replaces needs the right to delete."""
    client = satellite.client
    client.upload(b"a")
    kept = client.upload(b"b")
    writer = client.restricted(actions=[Action.READ, Action.WRITE])
    with pytest.raises(PermissionDenied, match="may not overwrite"):
        writer.copy(b"a", b"b")
    with pytest.raises(PermissionDenied, match="may not overwrite"):
        writer.upload(b"b")
    with pytest.raises(PermissionDenied):
        writer.move(b"a", b"c")
    with pytest.raises(PermissionDenied):
        writer.satellite.update_object_metadata(
            pb.ObjectUpdateMetadataRequest(
                header=writer.header,
                bucket="first",
                encrypted_object_key=b"b",
                stream_id=kept.stream_id,
            )
        )
    with pytest.raises(PermissionDenied):
        writer.delete(b"b")
    assert client.get(b"b") == kept
    writer.copy(b"a", b"new")


def test_times_of_a_key(satellite: SatelliteUnderTest, clock: Clock) -> None:
    """Before and after its time a key is denied."""
    client = satellite.client
    client.upload(b"a")
    early = client.restricted(not_before=clock() + HOUR_US, not_after=clock() + 2 * HOUR_US)
    with pytest.raises(PermissionDenied):
        early.get(b"a")
    clock.advance(HOUR_US + HOUR_US // 2)
    early.get(b"a")
    clock.advance(HOUR_US)
    with pytest.raises(PermissionDenied):
        early.get(b"a")


def test_the_moments_of_a_restriction() -> None:
    """A key is valid from its first microsecond to the one before its last."""
    valid = Restriction(not_before=10, not_after=20)
    assert [now for now in range(30) if valid.valid_at(now)] == list(range(10, 20))


def test_what_was_deleted_is_told_to_readers_alone(satellite: SatelliteUnderTest) -> None:
    """A key that may delete and not read learns only that something went."""
    client = satellite.client
    for key in (b"a", b"b"):
        client.upload(key)
    blind = client.restricted(actions=[Action.DELETE]).delete(b"a")
    assert (blind.deleted, blind.HasField("object")) == (True, False)
    assert client.delete(b"b").object.encrypted_object_key == b"b"


def test_listing_gives_no_bytes(satellite: SatelliteUnderTest) -> None:
    """The right to list shows objects, not their segments, uploads, or how to change them."""
    client = satellite.client
    client.upload(b"a")
    lister = client.restricted(actions=[Action.LIST])
    assert lister.keys() == [b"a"]
    lister.get(b"a")
    with pytest.raises(PermissionDenied):
        lister.segments(b"a")
    with pytest.raises(PermissionDenied):
        lister.begin(b"b")
    with pytest.raises(PermissionDenied):
        lister.delete(b"a")
    with pytest.raises(PermissionDenied):
        lister.bucket("third")


def test_buckets_that_a_key_sees(satellite: SatelliteUnderTest) -> None:
    """A key limited to one bucket neither sees, makes nor deletes another."""
    client = satellite.client
    limited = client.restricted(paths=_inside(("second", b"")))
    names = limited.satellite.list_buckets(pb.BucketListRequest(header=limited.header))
    assert [bucket.name for bucket in names.items] == ["second"]
    for name in ("first", "third"):
        with pytest.raises(PermissionDenied):
            limited.bucket(name)
    with pytest.raises(PermissionDenied):
        limited.satellite.delete_bucket(pb.BucketDeleteRequest(header=limited.header, name="first"))
    inner = client.restricted(paths=_inside(("second", b"in")))
    with pytest.raises(PermissionDenied):
        inner.satellite.delete_bucket(pb.BucketDeleteRequest(header=inner.header, name="second"))


def test_restrictions_add_up(satellite: SatelliteUnderTest) -> None:
    """A second restriction can only narrow the first."""
    client = satellite.client
    client.upload(b"a")
    narrow = client.restricted(actions=[Action.READ]).restricted(
        actions=[Action.WRITE, Action.READ, Action.DELETE]
    )
    narrow.get(b"a")
    with pytest.raises(PermissionDenied):
        narrow.delete(b"a")


def test_revocation(satellite: SatelliteUnderTest) -> None:
    """A revoked key and everything made from it is denied; the key it was made from is not."""
    client = satellite.client
    client.upload(b"a")
    child = client.restricted(actions=[Action.READ])
    grandchild = child.restricted(not_after=2**55)
    grandchild.get(b"a")
    client.satellite.revoke_api_key(
        pb.ApiKeyRevokeRequest(header=client.header, api_key=bytes(child.api_key))
    )
    for revoked in (child, grandchild):
        with pytest.raises(PermissionDenied, match="revoked"):
            revoked.get(b"a")
    client.get(b"a")


def test_a_key_revokes_only_what_was_made_from_it(satellite: SatelliteUnderTest) -> None:
    """Not the key it was made from, nor a sibling, nor another key of the same project."""
    client = satellite.client
    client.upload(b"a")
    child, sibling = client.restricted(actions=[Action.READ]), client.restricted()
    project = satellite.endpoint.admin.find_project("satellite")
    assert project is not None
    second = Client(client.satellite, satellite.endpoint.admin.create_api_key(project.id))
    for thief, victim in (
        (child, client),
        (child, sibling),
        (child, second),
        (second, client),
        (second, child),
    ):
        with pytest.raises(PermissionDenied, match="only itself"):
            thief.satellite.revoke_api_key(
                pb.ApiKeyRevokeRequest(header=thief.header, api_key=bytes(victim.api_key))
            )
        victim.get(b"a")
    child.satellite.revoke_api_key(
        pb.ApiKeyRevokeRequest(header=child.header, api_key=bytes(child.api_key))
    )
    with pytest.raises(PermissionDenied, match="revoked"):
        child.get(b"a")
    sibling.get(b"a")


def test_a_foreign_key(satellite: SatelliteUnderTest) -> None:
    """A key of another satellite is denied, and cannot be revoked here."""
    foreign = Client(satellite.client.satellite, ApiKey.create(b"x" * 32))
    with pytest.raises(PermissionDenied, match="not one of this satellite's"):
        foreign.get(b"a")
    with pytest.raises(PermissionDenied):
        satellite.client.satellite.revoke_api_key(
            pb.ApiKeyRevokeRequest(header=satellite.client.header, api_key=bytes(foreign.api_key))
        )


def test_rate_limit() -> None:
    """A second's calls may come at once, the next is told how long to wait."""
    now = [0.0]
    limit = RateLimit(2.0, clock=lambda: now[0])
    limit.take(b"p")
    limit.take(b"p")
    with pytest.raises(RateLimited) as caught:
        limit.take(b"p")
    assert caught.value.retry_after == pytest.approx(0.5)
    limit.take(b"another")
    now[0] = 0.6
    limit.take(b"p")


def test_a_satellite_with_a_rate(tmp_path: object) -> None:
    """The endpoint refuses calls beyond the project's rate."""
    endpoint = Endpoint.open(
        f"sqlite:///{tmp_path}/meta.db", SatelliteSettings(calls_per_second=0.01)
    )
    project = endpoint.admin.create_project("p")
    client = Client(endpoint, endpoint.admin.create_api_key(project.id))
    endpoint.list_buckets(pb.BucketListRequest(header=client.header))
    with pytest.raises(RateLimited):
        endpoint.list_buckets(pb.BucketListRequest(header=client.header))
    endpoint.close()
