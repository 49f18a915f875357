"""Copies within GCS: calls, conditions, metadata."""

import gzip
import json
from urllib.parse import parse_qs, urlsplit

import pytest

from calque.errors import (
    CheckpointInvalid,
    ConditionNotMatch,
    IntegrityError,
    NotFound,
    Unavailable,
    Unexpected,
    Unsupported,
)
from calque.operator import Operator
from calque.operator.layers import Chain, ConcurrencyLimit
from calque.values import MIB
from tests.servers.gcs_fake import GcsFake
from tests.servers.proxy import Fault, FaultProxy, Reply

DATA = b"0123456789abcdef" * (3 * MIB // 16) + b"tail"


def test_far_is_several_calls_near_is_one(near: Operator, far: Operator, fake: GcsFake) -> None:
    """Steps are the bytes of each call and sum up to the whole."""
    near.write("x", DATA)
    steps = list(near.copier("x", "y", into=far, chunk=MIB))
    assert steps == [MIB, MIB, MIB, 4]
    assert far.read("y") == DATA
    fake.world.journal.clear()
    assert list(near.copier("x", "y", chunk=MIB)) == [len(DATA)]
    assert fake.world.journal.count("rewrite") == 1


def test_a_chunk_is_rounded_up_to_whole_mebibytes(near: Operator, far: Operator) -> None:
    """The service takes nothing else; the caller need not know."""
    near.write("x", DATA)
    assert list(near.copier("x", "y", into=far, chunk=MIB + 1)) == [2 * MIB, MIB + 4]


def test_every_call_has_the_same_parameters(
    shaky: Operator, shaky_far: Operator, proxy: FaultProxy
) -> None:
    """All but the token, and the body too: the service refuses anything else."""
    shaky.write("x", DATA, user={"k": "v"})
    shaky.copy("x", "y", into=shaky_far, chunk=MIB, if_not_exists=True, carry_class=True)
    calls = proxy.seen("POST", "rewriteTo")
    queries = [parse_qs(urlsplit(call.target).query) for call in calls]
    tokens = [query.pop("rewriteToken", None) for query in queries]
    assert len(calls) == 4
    assert tokens[0] is None
    assert all(tokens[1:])
    assert all(query == queries[0] for query in queries)
    assert len({call.body for call in calls}) == 1
    assert set(queries[0]) == {
        "sourceGeneration",
        "ifGenerationMatch",
        "maxBytesRewrittenPerCall",
    }


def test_without_wishes_no_body_is_sent(shaky: Operator, proxy: FaultProxy) -> None:
    """The service's own rule carries the metadata over."""
    shaky.write("x", b"1", content_type="text/csv", cache_control="no-store", user={"k": "v"})
    shaky.copy("x", "y")
    (call,) = proxy.seen("POST", "rewriteTo")
    assert call.body == b""
    found = shaky.stat("y")
    assert (found.content_type, found.cache_control, found.user) == (
        "text/csv",
        "no-store",
        {"k": "v"},
    )


def test_storage_class(near: Operator) -> None:
    """The target's bucket decides, unless the source's class is asked for."""
    near.write("x", b"1", storage_class="NEARLINE", user={"k": "v"}, content_type="a/b")
    near.copy("x", "default")
    made = near.copy("x", "carried", carry_class=True)
    assert near.stat("default").storage_class == "STANDARD"
    assert (made.storage_class, made.user, made.content_type) == ("NEARLINE", {"k": "v"}, "a/b")
    bare = near.copy("x", "bare", carry_class=True, carry_metadata=False)
    assert (bare.storage_class, dict(bare.user)) == ("NEARLINE", {})


def test_expires_travels_though_gcs_has_no_such_field(near: Operator) -> None:
    """It comes back as it went, and user metadata does not show how."""
    stamp = "Wed, 21 Oct 2026 07:28:00 GMT"
    near.write("x", b"1", expires=stamp, user={"k": "v"})
    near.copy("x", "y")
    near.copy("x", "z", if_not_exists=True)
    for name in ("x", "y", "z"):
        found = near.stat(name)
        assert (found.expires, dict(found.user)) == (stamp, {"k": "v"})


def test_tags_are_not_there(near: Operator) -> None:
    """Written tags are Unsupported before anything is sent; copies ask for none."""
    with pytest.raises(Unsupported, match="tags"):
        near.write("x", b"1", tags={"a": "b"})
    assert not near.exists("x")
    near.write("x", b"1")
    near.copy("x", "y", carry_tags=True)


def test_if_match_takes_a_generation_or_the_services_etag(near: Operator, fake: GcsFake) -> None:
    """Both name the target's bytes; another one, or none at all, is a ConditionNotMatch."""
    near.write("x", b"new")
    old = near.write("t", b"old")
    etag = fake.world.object("near", "t").etag
    assert etag != old.etag
    near.copy("x", "t", if_match=etag)
    for stale in (etag, old.etag):
        with pytest.raises(ConditionNotMatch):
            near.copy("x", "t", if_match=stale)
    with pytest.raises(ConditionNotMatch):
        near.copy("x", "missing", if_match=etag)
    assert near.read("t") == b"new"
    near.delete("t", if_match=near.stat("t").etag)
    assert not near.exists("t")


def test_reads_and_deletes_take_the_services_etag_too(near: Operator, fake: GcsFake) -> None:
    """As long as it names the bytes that are there."""
    near.write("x", b"one")
    etag = fake.world.object("near", "x").etag
    assert near.read("x", if_match=etag) == b"one"
    near.write("x", b"two")
    with pytest.raises(ConditionNotMatch):
        near.read("x", if_match=etag)
    with pytest.raises(ConditionNotMatch):
        near.delete("x", if_match=etag)


def test_only_metadata_changed_is_the_same_object(near: Operator, fake: GcsFake) -> None:
    """The generation pins bytes: a patch of metadata between stat and copy does no harm."""
    near.write("x", b"one")
    copier = near.copier("x", "y")
    with fake.world.lock:
        fake.world.object("near", "x").metageneration += 1
    copier.run()
    assert near.read("y") == b"one"


def test_a_lost_answer_is_no_lost_race(
    shaky: Operator, shaky_far: Operator, proxy: FaultProxy
) -> None:
    """The last call acted and its answer was lost: the repeat finds its own object."""
    shaky.write("x", DATA)
    proxy.add(Fault(method="POST", contains="rewriteTo", after=3, drop=True, acted=True))
    made = shaky.copy("x", "y", into=shaky_far, chunk=MIB, if_not_exists=True)
    assert made.size == len(DATA)
    assert shaky_far.stat("y").etag == made.etag
    proxy.add(Fault(method="POST", contains="rewriteTo", drop=True))
    with pytest.raises(ConditionNotMatch):
        shaky.copy("x", "y", into=shaky_far, if_not_exists=True)


def test_one_place_is_enough(shaky: Operator, shaky_far: Operator, proxy: FaultProxy) -> None:
    """No request waits for another of the same copy, even when answers are lost."""
    limit = ConcurrencyLimit(1)
    near, far = (
        Operator(each.service.with_chain(Chain((*each.service.chain.layers, limit))))
        for each in (shaky, shaky_far)
    )
    proxy.add(Fault(method="POST", times=2, drop=True, acted=True))
    near.write("x", b"1", if_not_exists=True)
    near.copy("x", "y", into=far, if_not_exists=True)
    copier = near.copier("x", "z", into=far)
    near.write("x", b"2")
    with pytest.raises(ConditionNotMatch):
        copier.run()


def test_calls_that_fail_are_repeated_and_counted_once(
    shaky: Operator, shaky_far: Operator, proxy: FaultProxy
) -> None:
    """503, 429, a dropped connection, a cut reply: the same bytes in the end."""
    shaky.write("x", DATA)
    cases = [
        Fault(contains="rewriteTo", times=2, reply=Reply(503)),
        Fault(contains="rewriteTo", after=1, reply=Reply(429, {"Retry-After": "0"})),
        Fault(contains="rewriteTo", drop=True),
        Fault(contains="rewriteTo", after=1, acted=True, drop=True),
        Fault(contains="rewriteTo", cut=10),
        Fault(contains="rewriteTo", reply=Reply(200, {}, b"not json")),
        Fault(contains="rewriteTo", reply=Reply(200, {}, b'{"error": {"code": 500}}')),
    ]
    for number, fault in enumerate(cases):
        proxy.add(fault)
        copier = shaky.copier("x", f"y{number}", into=shaky_far, chunk=MIB)
        assert sum(copier) == len(DATA)
        assert copier.progress.copied == len(DATA)
        assert fault.hits
        assert shaky_far.read(f"y{number}") == DATA


def test_a_reply_that_lacks_what_it_must_say(shaky: Operator, proxy: FaultProxy) -> None:
    """Neither done nor a token, or no counts: an error, no endless loop and no success."""
    shaky.write("x", b"1")
    for reply in ({}, {"done": True, "totalBytesRewritten": "1", "objectSize": "1"}):
        proxy.add(Fault(contains="rewriteTo", reply=Reply(200, {}, json.dumps(reply).encode())))
        with pytest.raises(Unexpected):
            shaky.copy("x", "y")
    lost = {"done": False, "totalBytesRewritten": "0", "objectSize": "1"}
    proxy.add(Fault(contains="rewriteTo", reply=Reply(200, {}, json.dumps(lost).encode())))
    with pytest.raises(IntegrityError):
        shaky.copy("x", "y")
    assert not shaky.exists("y")


def test_calls_without_progress_are_bounded(
    near: Operator, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service that only ever hands out tokens is given up on."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    near.write("x", DATA)
    idle = {
        "done": False,
        "totalBytesRewritten": "0",
        "objectSize": str(len(DATA)),
        "rewriteToken": "t",
    }
    proxy.add(Fault(contains="rewriteTo", times=None, reply=Reply(body=json.dumps(idle).encode())))
    through = Operator.from_uri("gs://near", endpoint=proxy.endpoint, anonymous=True)
    with pytest.raises(Unavailable, match="not moved"):
        through.copy("x", "y")
    assert proxy.count("POST", "rewriteTo") < 50


def test_a_checksum_that_differs_is_an_error(shaky: Operator, proxy: FaultProxy) -> None:
    """The crc32c of the target is compared with the source's."""
    shaky.write("x", b"1")

    def damage(reply: Reply) -> Reply:
        document = json.loads(reply.body)
        document["resource"]["crc32c"] = "AAAAAA=="
        return Reply(200, {}, json.dumps(document).encode())

    proxy.add(Fault(contains="rewriteTo", edit=damage))
    with pytest.raises(IntegrityError, match="checksum"):
        shaky.copy("x", "y")


def test_other_services_and_endpoints(near: Operator, far: Operator) -> None:
    """Server-side only within one endpoint; elsewhere Unsupported, or a stream when asked."""
    near.write("x", b"bytes", content_type="text/x")
    elsewhere = Operator.from_uri("gs://far", endpoint="http://127.0.0.1:9", anonymous=True)
    with pytest.raises(Unsupported):
        near.copy("x", "y", into=elsewhere)
    memory = Operator.from_uri("memory://")
    with pytest.raises(Unsupported):
        near.copy("x", "y", into=memory)
    near.copy("x", "y", into=memory, stream=True)
    assert memory.read("y") == b"bytes"
    memory.copy("y", "back", into=far, stream=True, if_not_exists=True)
    assert (far.read("back"), far.stat("back").content_type) == (b"bytes", "text/x")


def test_an_old_token_is_refused(near: Operator, far: Operator, fake: GcsFake) -> None:
    """410 of the service: CheckpointInvalid, which says to copy anew."""
    near.write("x", DATA)
    copier = near.copier("x", "y", into=far, chunk=MIB)
    next(copier)
    checkpoint = copier.pause()
    born = fake.world.now()
    fake.world.now = lambda: born + 8 * 24 * 3600
    with pytest.raises(CheckpointInvalid, match="token"):
        near.resume(checkpoint, into=far).run()
    assert not far.exists("y")


def test_what_is_stored_packed_is_read_packed(near: Operator) -> None:
    """GCS would unpack it for who does not take gzip, and break ranges and sizes."""
    packed = gzip.compress(b"plain" * 100)
    near.write("z", packed, content_encoding="gzip")
    assert near.read("z") == packed
    assert near.read("z", offset=3, length=5) == packed[3:8]
    near.copy("z", "z2")
    assert (near.read("z2"), near.stat("z2").content_encoding) == (packed, "gzip")


@pytest.mark.parametrize(
    "reply",
    [
        b"[]",
        b"null",
        b'{"generation": "abc"}',
        b'{"generation": "1", "size": "many"}',
        b'{"generation": "1", "updated": "yesterday"}',
        b"\xff\xfe",
    ],
)
def test_answers_that_cannot_be_read(shaky: Operator, proxy: FaultProxy, reply: bytes) -> None:
    """A captive portal or a broken server: an error of ours, not a crash or a guess."""
    proxy.add(Fault(method="GET", times=None, reply=Reply(200, {}, reply)))
    with pytest.raises(Unexpected):
        shaky.stat("x")


def test_the_error_says_which_condition_failed(near: Operator) -> None:
    """In words of what was asked."""
    near.write("x", b"1")
    near.write("y", b"2")
    for write in (near.copy, lambda _, to, **how: near.write(to, b"3", **how)):
        with pytest.raises(ConditionNotMatch, match="exists already"):
            write("x", "y", if_not_exists=True)
        with pytest.raises(ConditionNotMatch, match="if_match"):
            write("x", "y", if_match="12345")


@pytest.mark.parametrize(
    "said", ["Not Found", "The destination bucket does not exist.", "", "Bucket gone not found."]
)
def test_a_missing_target_bucket_is_not_a_replaced_source(
    near: Operator, shaky: Operator, proxy: FaultProxy, said: str
) -> None:
    """Servers word it differently; the source is looked at before it is blamed."""
    near.write("from", b"bytes")
    body = json.dumps({"error": {"code": 404, "message": said}}).encode()
    proxy.add(Fault(method="POST", contains="rewriteTo", times=None, reply=Reply(404, {}, body)))
    gone = Operator.from_uri("gs://gone", endpoint=proxy.endpoint, anonymous=True)
    with pytest.raises(NotFound, match="bucket gs://gone"):
        shaky.copy("from", "to", into=gone)
