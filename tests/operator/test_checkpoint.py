"""The checkpoint envelope."""

import json
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calque.errors import CalqueError, CheckpointInvalid, InvalidInput, Unsupported
from calque.operator import Capability, Checkpoint, CopyOptions, Operator
from calque.operator.checkpoint import CopyIdentity, _digest
from calque.values import Metadata

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


def envelope(payload: dict[str, object]) -> Checkpoint:
    source = Metadata(path="from", size=9, etag="e", last_modified=datetime.now(UTC))
    identity = CopyIdentity("s3", source, "s3://b/from", "to", "s3://b/to", CopyOptions(chunk=5))
    return Checkpoint.of(identity, {"plan": {"size": 9}, **payload})


@given(st.dictionaries(st.text(max_size=8), json_values, max_size=4))
def test_an_envelope_comes_back_whole(payload: dict[str, object]) -> None:
    """JSON there and back is the same checkpoint, whatever a service puts into it."""
    checkpoint = envelope(payload)
    again = Checkpoint.from_json(checkpoint.to_json())
    assert again == checkpoint
    assert again.copy_options == CopyOptions(chunk=5)


def test_the_envelope_shows_what_it_is() -> None:
    """Version, scheme, source, destination, options, plan, payload, time and digest."""
    body = json.loads(envelope({"upload": "u"}).to_json())
    assert set(body) == {
        "calque_checkpoint",
        "scheme",
        "source",
        "destination",
        "options",
        "plan",
        "payload",
        "created",
        "digest",
    }
    assert body["payload"] == {"upload": "u"}
    assert body["plan"] == {"size": 9}
    assert body["source"]["etag"] == "e"


@given(st.data())
def test_any_changed_character_is_found(data: st.DataObject) -> None:
    """Damage anywhere in the file is CheckpointInvalid, never a wrong resume."""
    text = envelope({"upload": "abc"}).to_json()
    at = data.draw(st.integers(0, len(text) - 1))
    changed = data.draw(st.characters(codec="ascii").filter(lambda each: each != text[at]))
    broken = text[:at] + changed + text[at + 1 :]
    try:
        same = json.loads(broken) == json.loads(text)
    except ValueError:
        same = False
    if not same:
        with pytest.raises(CheckpointInvalid):
            Checkpoint.from_json(broken)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("created", "yesterday"),
        ("created", 5),
        ("payload", "x"),
        ("payload", None),
        ("options", {"concurrent": 0}),
        ("options", {"unheard": 1}),
        ("options", "x"),
        ("source", {}),
        ("source", {"path": 5, "location": "s3://b/from", "size": 9}),
        ("source", None),
        ("destination", {"path": "../x", "location": "s3://b/to"}),
        ("destination", {}),
        ("plan", 7),
    ],
)
def test_a_forged_digest_opens_nothing(name: str, value: object) -> None:
    """Whatever somebody puts in and signs anew, a resume answers with an error of ours."""
    op = Operator.from_uri("memory://", threshold=1, part_size=1)
    op.write("from", b"abc")
    copier = op.copier("from", "to")
    next(copier)
    body = json.loads(copier.pause().to_json())
    del body["digest"]
    body[name] = value
    forged = json.dumps({**body, "digest": _digest(body)})
    with pytest.raises((CheckpointInvalid, InvalidInput)):
        op.resume(forged)
    assert not op.exists("to")


def leaves(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The place of everything in a document, containers included."""
    if path:
        yield path
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, (*path, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, (*path, index))


odd_values = json_values | st.sampled_from(
    [-1, 10**30, 1.5, "../x", "\0", "\udcff", "9999-12-31T23:59:59", "0001-01-01T00:00:00+00:00"]
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["memory", "fs"]), odd_values, st.integers(0, 999))
def test_any_forged_value_is_harmless(scheme: str, value: object, number: int) -> None:
    """Whatever stands anywhere in an envelope with a digest that fits: the right target, or an
    error of ours."""
    with tempfile.TemporaryDirectory() as folder:
        root = folder if scheme == "fs" else "memory://?threshold=1&part_size=1"
        op = Operator.from_uri(root)
        op.write("from", b"abcdef")
        copier = op.copier("from", "to", chunk=2, concurrent=2)
        next(copier)
        body = json.loads(copier.pause().to_json())
        del body["digest"]
        # Drawn as a number: how many places there are depends on how far the copy came.
        places = list(leaves(body))
        *above, last = places[number % len(places)]
        within = body
        for step in above:
            within = within[step]
        within[last] = value
        try:
            op.resume(json.dumps({**body, "digest": _digest(body)})).run()
        except CalqueError:
            assert not op.exists("to")
        else:
            assert op.read("to") == b"abcdef"


@pytest.mark.parametrize(
    "text", [b"[" * 100_000, b"\xff\xfe", b"", b"null", b"1" * 5000, b"{}", "\udcff"]
)
def test_what_is_no_envelope_at_all(text: str | bytes) -> None:
    """Nested too deep, no UTF-8, no JSON, nothing: CheckpointInvalid."""
    with pytest.raises(CheckpointInvalid):
        Operator.from_uri("memory://").resume(text)


def test_other_versions_are_refused() -> None:
    """A checkpoint of a later calque says so, whatever its digest."""
    body = json.loads(envelope({}).to_json())
    body["calque_checkpoint"] = 2
    with pytest.raises(CheckpointInvalid, match="version 2"):
        Checkpoint.from_json(json.dumps(body))


def test_a_checkpoint_grows_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """Older than the service keeps unfinished copies: refused before anything is sent."""
    op = Operator.from_uri("memory://", threshold=1, part_size=1)
    op.write("from", b"abc")
    copier = op.copier("from", "to")
    next(copier)
    checkpoint = copier.pause()
    old = Checkpoint(**{**fields_of(checkpoint), "created": checkpoint.created - timedelta(days=8)})
    kept = type(op.service)
    week = Capability(copy=True, copy_resumable=True, copy_resumable_for=7 * 86400)
    monkeypatch.setattr(kept, "capability", property(lambda _: week))
    with pytest.raises(CheckpointInvalid, match="days old"):
        op.resume(old)
    assert sum(op.resume(checkpoint)) == 3


def test_another_service_refuses_it() -> None:
    """By its scheme, and where the service has no resume at all."""
    op = Operator.from_uri("memory://")
    with pytest.raises(CheckpointInvalid, match="s3"):
        op.resume(envelope({}))


def test_no_secret_gets_in() -> None:
    """Only what names the copy stands in it: no option that opened the service."""
    op = Operator.from_uri("memory://named", threshold=1, part_size=1)
    op.write("from", b"abc")
    with op.copier("from", "to") as copier:
        next(copier)
        body = json.loads(copier.checkpoint().to_json())
    assert set(body["options"]) == set(CopyOptions.__slots__)
    assert set(body["payload"]) == {"driver", "upload", "parts"}


def test_resume_needs_a_service_that_can(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unsupported, where the service does not declare it."""
    op = Operator.from_uri("memory://", threshold=1, part_size=1)
    op.write("from", b"abc")
    copier = op.copier("from", "to")
    next(copier)
    checkpoint = copier.pause()
    monkeypatch.setattr(type(op.service), "capability", property(lambda _: Capability(copy=True)))
    with pytest.raises(Unsupported):
        op.resume(checkpoint)


def fields_of(checkpoint: Checkpoint) -> dict[str, object]:
    return {name: getattr(checkpoint, name) for name in Checkpoint.__slots__}
