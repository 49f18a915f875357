"""Upload and download: every size class, whole and in ranges; nothing half-done is seen."""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calque.errors import (
    AlreadyExists,
    ConditionNotMatch,
    IntegrityError,
    InvalidInput,
    NotFound,
)
from calque.store.nodes.erasure import Redundancy
from calque.store.nodes.expire import delete_expired_pieces
from calque.store.nodes.pieces import piece_path
from calque.store.upkeep.expire import SweepReport, sweep_store
from calque.store.uplink.encryption.blocks import EncryptionParameters
from calque.store.uplink.encryption.cipher import CipherSuite
from calque.store.uplink.session import UplinkSettings
from calque.values import MIB
from tests.store_client.world import BUCKET, SEGMENT, SIZES, SMALL, World


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_bytes_come_back(world: World, size: int) -> None:
    """What is uploaded is downloaded, and stat says what was stored."""
    content = os.urandom(size)
    made = world.project.upload(BUCKET, "k", content, metadata={"color": "red"})
    download = world.project.download(BUCKET, "k")
    assert download.size == size
    assert download.read() == content
    assert made == download.info == world.project.stat(BUCKET, "k")
    assert (made.size, dict(made.metadata)) == (size, {"color": "red"})


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.integers(0, 3500), st.one_of(st.none(), st.integers(0, 3500)))
def test_any_range_is_a_slice(world: World, offset: int, length: int | None) -> None:
    """Ranges that cross segment borders, begin at the end or reach past it are cut like slices."""
    content = bytes(i * 7 % 251 for i in range(3 * SEGMENT + 20))
    if not world.keys():
        world.project.upload(BUCKET, "k", content)
    got = world.project.download(BUCKET, "k", offset=offset, length=length).read()
    assert got == content[offset : None if length is None else offset + length]


def test_negative_ranges_are_refused(plain_world: World) -> None:
    """A range before the beginning is the caller's mistake."""
    with pytest.raises(InvalidInput, match="negative"):
        plain_world.project.download(BUCKET, "k", offset=-1)


def test_ranges_of_any_size(plain_world: World) -> None:
    """A range larger than any number of a message is cut as a slice is."""
    plain_world.project.upload(BUCKET, "k", b"0123456789")
    for offset, length in ((3, sys.maxsize), (0, 2**80), (10, 2**63), (2**63, None), (2**80, 1)):
        download = plain_world.project.download(BUCKET, "k", offset=offset, length=length)
        assert download.size == max(0, 10 - offset)
        assert download.read() == b"0123456789"[offset:]


def test_files_and_chunks_are_the_same(plain_world: World) -> None:
    """Bytes, chunks of any size and an open file make the same object."""
    content = os.urandom(2500)
    chunks = (content[i : i + 77] for i in range(0, 2500, 77))
    for key, source in (("a", content), ("b", chunks), ("c", io.BytesIO(content))):
        plain_world.project.upload(BUCKET, key, source)
        assert plain_world.project.download(BUCKET, key).read() == content


def test_a_download_is_a_file(world: World) -> None:
    """It reads in pieces of any size, and can itself be uploaded."""
    content = os.urandom(2 * SEGMENT + 77)
    world.project.upload(BUCKET, "a", content)
    download = world.project.download(BUCKET, "a")
    got = [download.read(1), download.read(0), download.read(SEGMENT), b"".join(download)]
    assert b"".join(got) == content
    assert (len(got[0]), len(got[1]), len(got[2])) == (1, 0, SEGMENT)
    assert download.read(5) == download.read() == b""
    world.project.upload(BUCKET, "b", world.project.download(BUCKET, "a"))
    assert world.project.download(BUCKET, "b").read() == content


def test_a_failing_source_leaves_nothing(world: World) -> None:
    """When the bytes fail midway, the old object stands, and rows and pieces are gone."""
    world.project.upload(BUCKET, "k", b"old")

    def failing() -> Iterator[bytes]:
        yield os.urandom(2 * SEGMENT + 10)
        raise RuntimeError("the disk caught fire")

    with pytest.raises(RuntimeError, match="caught fire"):
        world.project.upload(BUCKET, "k", failing())
    assert world.project.download(BUCKET, "k").read() == b"old"
    assert list(world.project.list_pending(BUCKET)) == []


def test_nothing_is_visible_before_the_commit(plain_world: World) -> None:
    """While an upload runs, its key does not exist for anybody."""

    def watching() -> Iterator[bytes]:
        yield os.urandom(SEGMENT * 2)
        with pytest.raises(NotFound):
            plain_world.project.stat(BUCKET, "k")
        assert plain_world.keys() == []
        yield b"end"

    plain_world.project.upload(BUCKET, "k", watching())
    assert plain_world.keys() == ["k"]


def test_an_overwrite_replaces_bytes_and_pieces(world: World) -> None:
    """The old pieces go with the old object; the new ones are all there is."""
    world.project.upload(BUCKET, "k", os.urandom(3 * SEGMENT))
    before = world.piece_count()
    content = os.urandom(3 * SEGMENT)
    world.project.upload(BUCKET, "k", content)
    assert world.piece_count() == before
    assert world.project.download(BUCKET, "k").read() == content


def test_conditions(plain_world: World) -> None:
    """if_not_exists and if_match are kept; a refused upload leaves no piece."""
    project = plain_world.project
    first = project.upload(BUCKET, "k", os.urandom(2000), if_not_exists=True)
    pieces = plain_world.piece_count()
    with pytest.raises((ConditionNotMatch, AlreadyExists)):
        project.upload(BUCKET, "k", os.urandom(2000), if_not_exists=True)
    with pytest.raises(ConditionNotMatch):
        project.upload(BUCKET, "k", os.urandom(2000), if_match="00" * 16)
    with pytest.raises(ConditionNotMatch):
        project.upload(BUCKET, "k", os.urandom(2000), if_match="no etag at all")
    assert plain_world.piece_count() == pieces
    second = project.upload(BUCKET, "k", b"new", if_match=first.etag)
    assert second.etag != first.etag
    with pytest.raises(ConditionNotMatch):
        project.download(BUCKET, "k", if_match=first.etag)
    assert project.download(BUCKET, "k", if_match=second.etag).read() == b"new"
    with pytest.raises(ConditionNotMatch):
        project.delete_object(BUCKET, "k", if_match=first.etag)
    assert project.delete_object(BUCKET, "k", if_match=second.etag)
    assert not project.delete_object(BUCKET, "k")


def test_a_replaced_object_is_never_mixed(plain_world: World) -> None:
    """A download that is overtaken by an overwrite fails; it never continues with other bytes."""
    plain_world.project.upload(BUCKET, "k", bytes(6 * SEGMENT))
    chunks = iter(plain_world.project.download(BUCKET, "k"))
    got = next(chunks)
    plain_world.project.upload(BUCKET, "k", b"\xff" * 6 * SEGMENT)
    rest: list[bytes] = []
    with pytest.raises((ConditionNotMatch, NotFound)):
        rest.extend(chunks)
    assert set(got + b"".join(rest)) == {0}


def test_the_cipher_of_the_object_is_used(world: World) -> None:
    """An object is read and copied with the cipher it was written with, not the client's."""
    other = replace(SMALL, encryption=EncryptionParameters(CipherSuite.CHACHA20_POLY1305, 16 + 33))
    theirs = world.through(world.project.access, other)
    content = os.urandom(2 * SEGMENT + 9)
    theirs.upload(BUCKET, "k", content, metadata={"a": "b"})
    assert world.project.download(BUCKET, "k", offset=5).read() == content[5:]
    world.project.copy_object(BUCKET, "k", BUCKET, "copy")
    assert world.project.download(BUCKET, "copy").read() == content
    assert dict(theirs.stat(BUCKET, "copy").metadata) == {"a": "b"}
    world.project.move_object(BUCKET, "copy", BUCKET, "moved")
    assert theirs.download(BUCKET, "moved").read() == content


def test_metadata_limits(plain_world: World) -> None:
    """8 KiB of metadata pass, one byte more is refused before anything is sent."""
    fits = {"k": "x" * (8192 - len('{"k":""}'))}
    plain_world.project.upload(BUCKET, "k", b"", metadata=fits)
    assert dict(plain_world.project.stat(BUCKET, "k").metadata) == fits
    with pytest.raises(InvalidInput, match="8193"):
        plain_world.project.upload(BUCKET, "k", b"", metadata={"k": fits["k"] + "x"})
    with pytest.raises(InvalidInput, match="text"):
        plain_world.project.upload(BUCKET, "k", b"", metadata={"k": 1})  # type: ignore[dict-item]
    with pytest.raises(InvalidInput, match="Unicode"):
        plain_world.project.upload(BUCKET, "k", b"", metadata={"k": "\ud800"})


@pytest.mark.parametrize("size", [0, 10, 2 * SEGMENT], ids=["empty", "inline", "remote"])
def test_metadata_is_known_last(world: World, size: int) -> None:
    """A function gives the metadata when the last byte was read, as an MD5 must be."""
    seen: list[bytes] = []

    def chunks() -> Iterator[bytes]:
        for start in range(0, size, 700):
            seen.append(bytes(min(700, size - start)))
            yield seen[-1]

    made = world.project.upload(
        BUCKET, "k", chunks(), metadata=lambda: {"size": str(len(b"".join(seen)))}
    )
    assert dict(made.metadata) == {"size": str(size)}
    assert world.project.stat(BUCKET, "k") == made


@pytest.mark.parametrize("size", [10, 2 * SEGMENT], ids=["inline", "remote"])
def test_metadata_that_refuses_ends_the_upload(world: World, size: int) -> None:
    """What the function raises (a wrong checksum) leaves the object as it was, and no piece."""

    def refuse() -> dict[str, str]:
        raise InvalidInput("the checksum is wrong")

    world.project.upload(BUCKET, "k", b"old")
    with pytest.raises(InvalidInput, match="checksum"):
        world.project.upload(BUCKET, "k", os.urandom(size), metadata=refuse)
    assert world.project.download(BUCKET, "k").read() == b"old"
    assert list(world.project.list_pending(BUCKET)) == []
    assert world.piece_count() == 0


def test_metadata_is_replaced_alone(plain_world: World) -> None:
    """New metadata leaves bytes and etag as they are; a stale etag is refused."""
    made = plain_world.project.upload(BUCKET, "k", b"bytes", metadata={"a": "1"})
    updated = plain_world.project.update_metadata(BUCKET, "k", {"b": "ü"}, if_match=made.etag)
    assert dict(updated.metadata) == {"b": "ü"}
    assert updated.etag == made.etag
    assert plain_world.project.download(BUCKET, "k").read() == b"bytes"
    with pytest.raises(ConditionNotMatch):
        plain_world.project.update_metadata(BUCKET, "k", {}, if_match="11" * 16)
    assert dict(plain_world.project.update_metadata(BUCKET, "k", {}).metadata) == {}


def test_expired_objects_are_gone(world: World) -> None:
    """Past its time an object and its copy are not found; a sweep removes rows and pieces."""
    project, soon = world.project, world.clock.now() + timedelta(hours=1)
    made = project.upload(BUCKET, "k", os.urandom(2 * SEGMENT), expires=soon)
    assert made.expires == soon
    assert project.copy_object(BUCKET, "k", BUCKET, "copy").expires == soon
    project.upload(BUCKET, "stays", os.urandom(SEGMENT))
    upload = project.begin_multipart(BUCKET, "abandoned")
    upload.upload_part(1, os.urandom(SEGMENT))
    world.clock.ahead += timedelta(minutes=59)
    assert sweep_store(world.store) == SweepReport(0, 0, 0, 0, 0)
    world.clock.ahead += timedelta(minutes=2)
    assert world.keys() == ["stays"]
    for key in ("k", "copy"):
        with pytest.raises(NotFound):
            project.download(BUCKET, key)
    with pytest.raises(NotFound):
        project.copy_object(BUCKET, "k", BUCKET, "late")
    assert sweep_store(world.store).expired_objects == 2
    world.clock.ahead += timedelta(days=3)
    swept = sweep_store(world.store)
    nodes = world.store.nodes.direct()
    assert (swept.abandoned_uploads, swept.expired_pieces) == (1, 2 * len(nodes))
    assert world.piece_count() == len(nodes)
    assert [list(node.root.list("expiries/")) for node in nodes] == [[] for _ in nodes]


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Los_Angeles"])
def test_an_expiry_without_a_zone(world: World, zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Satellite and nodes take it as UTC, wherever the client stands: no piece goes early."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        soon = world.clock.now() + timedelta(hours=5)
        made = world.project.upload(
            BUCKET, "k", os.urandom(SEGMENT), expires=soon.replace(tzinfo=None)
        )
    finally:
        monkeypatch.undo()
        time.tzset()
    assert made.expires == soon
    for node in world.store.nodes.direct():
        assert [e.path.split("/")[1] for e in node.root.list("expiries/")] == [
            soon.strftime("%Y%m%d%H")
        ]
        assert delete_expired_pieces(node, world.clock.now()) == 0
    assert len(world.project.download(BUCKET, "k").read()) == SEGMENT


def test_a_node_forgets_before_the_satellite(plain_world: World) -> None:
    """A node that collects by itself first leaves rows that fsck does not mistake for a loss."""
    project, soon = plain_world.project, plain_world.clock.now() + timedelta(hours=1)
    project.upload(BUCKET, "k", os.urandom(2 * SEGMENT), expires=soon)
    (node,) = plain_world.store.nodes.direct()
    plain_world.clock.ahead += timedelta(hours=5)
    assert delete_expired_pieces(node, plain_world.clock.now()) == 2
    assert plain_world.piece_count() == 0
    plain_world.check()
    assert sweep_store(plain_world.store).expired_objects == 1


def test_damaged_bytes_are_never_returned(plain_world: World) -> None:
    """A piece rewritten with valid hashes still does not decrypt: the cipher tells."""
    plain_world.project.upload(BUCKET, "a", os.urandom(SEGMENT))
    plain_world.project.upload(BUCKET, "b", os.urandom(SEGMENT))
    (node,) = plain_world.store.nodes.direct()
    first, second = (piece_path(s.piece) for s in node.pieces())
    kept = node.root.read(first)
    node.root.write(first, node.root.read(second))
    for key in ("a", "b"):
        try:
            plain_world.project.download(BUCKET, key).read()
        except IntegrityError:
            break
    else:
        pytest.fail("an exchanged piece was not noticed")
    node.root.write(first, kept)


def test_unknown_names(plain_world: World) -> None:
    """Missing objects and buckets are NotFound, and the message names the bucket."""
    with pytest.raises(NotFound):
        plain_world.project.download(BUCKET, "missing")
    with pytest.raises(NotFound, match="nowhere"):
        plain_world.project.upload("nowhere", "k", b"x")
    with pytest.raises(InvalidInput):
        plain_world.project.upload(BUCKET, "", b"x")
    with pytest.raises(InvalidInput):
        plain_world.project.upload("", "k", b"x")


@pytest.mark.parametrize("data", [None, 5, ["text"], "text", io.StringIO("text")])
def test_what_is_no_data(plain_world: World, data: Any) -> None:
    """Text and things are refused with what to do about it, and nothing stays behind."""
    with pytest.raises(InvalidInput, match="made of bytes"):
        plain_world.project.upload(BUCKET, "k", data)
    assert list(plain_world.project.list_pending(BUCKET)) == []
    assert plain_world.keys() == []


def test_broken_unicode_is_refused(plain_world: World) -> None:
    """Lone surrogates (names that were no UTF-8) are an error of ours wherever text is taken."""
    project, bad = plain_world.project, "x\ud800"
    upload = project.begin_multipart(BUCKET, "k")
    attempts: list[Callable[[], object]] = [
        lambda: project.upload(BUCKET, bad, b""),
        lambda: project.upload(bad, "k", b""),
        lambda: project.stat(BUCKET, bad),
        lambda: project.stat(bad, "k"),
        lambda: list(project.list_objects(BUCKET, bad + "/")),
        lambda: list(project.list_objects(BUCKET, start_after=bad)),
        lambda: project.create_bucket(bad),
        lambda: project.stat_bucket(bad),
        lambda: project.delete_bucket(bad),
        lambda: project.copy_object(BUCKET, "k", BUCKET, bad),
        lambda: upload.upload_part(1, b"", etag=bad),
    ]
    for attempt in attempts:
        with pytest.raises(InvalidInput, match="Unicode"):
            attempt()
    upload.abort()


@pytest.mark.parametrize(
    ("size", "segments", "pieces"),
    [
        (0, 0, 0),
        (1, 1, 0),
        (4096, 1, 0),
        (4097, 1, 1),
        pytest.param(64 * MIB - 1, 1, 1, marks=pytest.mark.soak),
        pytest.param(64 * MIB, 1, 1, marks=pytest.mark.soak),
        (64 * MIB + 1, 2, 1),
        pytest.param(64 * MIB + 4097, 2, 2, marks=pytest.mark.soak),
    ],
)
def test_the_sizes_of_a_real_store(
    make_world: Callable[..., World], size: int, segments: int, pieces: int
) -> None:
    """Inline up to 4 KiB, segments of 64 MiB, the byte at each border included."""
    world = make_world(Redundancy())  # with shares of the usual size
    project = world.through(world.project.access, UplinkSettings())
    block = os.urandom(1 * MIB)
    content = (block * (size // MIB + 1))[:size]
    assert project.upload(BUCKET, "k", content).segments == segments
    assert world.piece_count() == pieces
    project.copy_object(BUCKET, "k", BUCKET, "copy")
    project.delete_object(BUCKET, "k")
    assert hash(project.download(BUCKET, "copy").read()) == hash(content)
    border = 64 * MIB - 3
    assert project.download(BUCKET, "copy", offset=border, length=6).read() == content[border:][:6]
