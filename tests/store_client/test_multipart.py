"""Uploads in parts: any order, gaps, many threads, gone on with elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from calque.errors import CalqueError, ConditionNotMatch, InvalidInput, NotFound
from tests.store_client.world import BUCKET, OTHER, SEGMENT, World


def test_parts_out_of_order_with_gaps(world: World) -> None:
    """Parts 7, 1 and 5 make one object in the order of their numbers; a copy is the same."""
    parts = {7: os.urandom(SEGMENT + 30), 1: os.urandom(2 * SEGMENT), 5: os.urandom(10)}
    upload = world.project.begin_multipart(BUCKET, "k", metadata={"a": "b"})
    for number, content in parts.items():
        assert upload.upload_part(number, content, etag=f"etag-{number}") == len(content)
    listed = [(part.number, part.size, part.etag) for part in upload.parts()]
    assert listed == [(n, len(parts[n]), f"etag-{n}") for n in (1, 5, 7)]
    with pytest.raises(NotFound):
        world.project.stat(BUCKET, "k")
    made = upload.commit()
    whole = parts[1] + parts[5] + parts[7]
    assert (made.size, dict(made.metadata)) == (len(whole), {"a": "b"})
    assert world.project.download(BUCKET, "k").read() == whole
    world.project.copy_object(BUCKET, "k", OTHER, "copy")
    world.project.delete_object(BUCKET, "k")
    border = len(parts[1])
    for offset, length in ((0, None), (border - 5, 30), (border + 3, 2), (SEGMENT - 1, 2)):
        expected = whole[offset : None if length is None else offset + length]
        got = world.project.download(OTHER, "copy", offset=offset, length=length).read()
        assert got == expected


def test_parts_from_many_threads(world: World) -> None:
    """Eight threads upload parts at the same time; the object is right."""
    parts = [os.urandom(300 * (n % 5) + 1) for n in range(1, 17)]
    upload = world.project.begin_multipart(BUCKET, "k")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: upload.upload_part(n, parts[n - 1]), range(16, 0, -1)))
    upload.commit()
    assert world.project.download(BUCKET, "k").read() == b"".join(parts)


def test_metadata_at_the_end(plain_world: World) -> None:
    """Metadata given at the commit replaces what the upload began with."""
    upload = plain_world.project.begin_multipart(BUCKET, "k", metadata={"old": "1"})
    upload.upload_part(1, b"x")
    assert dict(upload.commit(metadata={"new": "2"}).metadata) == {"new": "2"}


def test_an_upload_goes_on_elsewhere(plain_world: World) -> None:
    """Bucket, key and id are enough to find, continue and commit an upload."""
    project = plain_world.project
    begun = project.begin_multipart(BUCKET, "a/b")
    begun.upload_part(1, b"first")
    (pending,) = project.list_pending(BUCKET)
    assert (pending.key, pending.upload_id) == ("a/b", begun.id)
    assert [p.key for p in project.list_pending(BUCKET, "a/")] == ["a/b"]
    again = project.resume_multipart(BUCKET, pending.key, pending.upload_id)
    again.upload_part(2, b" second")
    again.commit()
    assert project.download(BUCKET, "a/b").read() == b"first second"
    assert list(project.list_pending(BUCKET)) == []


def test_several_uploads_of_one_key(plain_world: World) -> None:
    """Uploads of one key do not disturb each other; the last commit wins, in pages too."""
    project = plain_world.project
    uploads = [project.begin_multipart(BUCKET, "k") for _ in range(5)]
    for number, upload in enumerate(uploads):
        upload.upload_part(1, os.urandom(SEGMENT) + bytes([number]))
    assert {p.upload_id for p in project.list_pending(BUCKET)} == {u.id for u in uploads}
    uploads[0].commit()
    uploads[3].commit()
    assert project.download(BUCKET, "k", offset=SEGMENT).read() == b"\x03"
    with pytest.raises(CalqueError):
        uploads[4].commit(if_not_exists=True)
    for upload in (uploads[1], uploads[2], uploads[4]):
        upload.abort()
    assert list(project.list_pending(BUCKET)) == []


def test_abort_leaves_nothing(world: World) -> None:
    """After an abort rows and pieces are gone and the upload takes no more parts."""
    upload = world.project.begin_multipart(BUCKET, "k")
    upload.upload_part(1, os.urandom(3 * SEGMENT))
    upload.abort()
    assert world.piece_count() == 0
    with pytest.raises((NotFound, ConditionNotMatch)):
        upload.upload_part(2, b"x")
    with pytest.raises((NotFound, ConditionNotMatch)):
        upload.commit()


def test_bad_parts_are_refused(plain_world: World) -> None:
    """Numbers out of range, a part twice and an upload of another key are said to be so."""
    project = plain_world.project
    upload = project.begin_multipart(BUCKET, "k")
    for number in (0, -1, 10_001):
        with pytest.raises(InvalidInput, match="1 to 10000"):
            upload.upload_part(number, b"x")
    with pytest.raises(InvalidInput, match="does not belong"):
        project.resume_multipart(BUCKET, "other", upload.id)
    with pytest.raises(CalqueError):
        project.resume_multipart(BUCKET, "k", b"forged")
    upload.abort()


def test_an_empty_part(plain_world: World) -> None:
    """A part of no bytes counts as a part, and an object of only that is empty."""
    upload = plain_world.project.begin_multipart(BUCKET, "k")
    assert upload.upload_part(1, b"", etag="e") == 0
    assert [(p.number, p.size, p.etag) for p in upload.parts()] == [(1, 0, "e")]
    assert upload.commit().size == 0
    assert plain_world.project.download(BUCKET, "k").read() == b""


@pytest.mark.parametrize("size", [0, 10, SEGMENT, 2 * SEGMENT + 5, 3 * SEGMENT, 5 * SEGMENT])
def test_a_part_again_replaces_it(world: World, size: int) -> None:
    """As in S3, the last upload of a part number is the one that counts, shorter or longer."""
    upload = world.project.begin_multipart(BUCKET, "k")
    upload.upload_part(1, os.urandom(3 * SEGMENT))
    upload.upload_part(2, b"tail")
    again = os.urandom(size)
    upload.upload_part(1, again)
    assert [(part.number, part.size) for part in upload.parts()] == [(1, size), (2, 4)]
    upload.commit()
    assert world.project.download(BUCKET, "k").read() == again + b"tail"
    world.project.copy_object(BUCKET, "k", BUCKET, "copy")
    assert world.project.download(BUCKET, "copy").read() == again + b"tail"


@pytest.mark.parametrize("size", [0, 10, SEGMENT, 2 * SEGMENT, 2 * SEGMENT + 5])
def test_an_etag_is_known_last(world: World, size: int) -> None:
    """A function gives the etag when the part was read; the list of parts gives it back."""
    read: list[int] = []

    def chunks() -> Iterator[bytes]:
        for start in range(0, size, 300):
            read.append(min(300, size - start))
            yield bytes(read[-1])

    upload = world.project.begin_multipart(BUCKET, "k")
    upload.upload_part(3, chunks(), etag=lambda: f"{sum(read)} bytes")
    (part,) = upload.parts()
    assert (part.number, part.size, part.etag) == (3, size, f"{size} bytes")
    upload.commit(parts=[part])
    (stored,) = world.project.list_parts(BUCKET, "k")
    assert stored == part
    world.project.copy_object(BUCKET, "k", OTHER, "copy")
    (copied,) = world.project.list_parts(OTHER, "copy")
    assert (copied.number, copied.size, copied.etag) == (3, size, f"{size} bytes")


@pytest.mark.parametrize("size", [10, 2 * SEGMENT + 5])
def test_a_part_that_fails_leaves_the_old_one(world: World, size: int) -> None:
    """A wrong checksum at the end of a part that is uploaded again changes nothing of it."""
    upload = world.project.begin_multipart(BUCKET, "k")
    content = os.urandom(size)
    upload.upload_part(1, content, etag="right")

    def refuse() -> str:
        raise InvalidInput("the checksum is wrong")

    for _ in range(2):
        with pytest.raises(InvalidInput, match="checksum"):
            upload.upload_part(1, os.urandom(size), etag=refuse)
        with pytest.raises(InvalidInput, match="checksum"):
            upload.upload_part(2, os.urandom(size), etag=refuse)
    assert [(part.number, part.size, part.etag) for part in upload.parts()] == [(1, size, "right")]
    upload.commit()
    assert world.project.download(BUCKET, "k").read() == content


def test_parts_left_out_are_dropped(world: World) -> None:
    """A commit takes the parts it names; what the others held is gone from the nodes too."""
    bodies = {number: os.urandom(SEGMENT + number) for number in (1, 2, 3)}
    upload = world.project.begin_multipart(BUCKET, "k")
    for number, body in bodies.items():
        upload.upload_part(number, body)
    upload.upload_part(3, bodies[3])
    before = world.piece_count()
    with pytest.raises(InvalidInput, match="part 4"):
        upload.commit(parts=[1, 4])
    made = upload.commit(parts=[1, 3])
    assert made.size == len(bodies[1] + bodies[3])
    assert world.project.download(BUCKET, "k").read() == bodies[1] + bodies[3]
    assert world.piece_count() == before // 2


def test_no_parts_make_an_empty_object(plain_world: World) -> None:
    """A commit of no parts drops them all."""
    upload = plain_world.project.begin_multipart(BUCKET, "k")
    upload.upload_part(1, os.urandom(SEGMENT))
    assert upload.commit(parts=[]).size == 0
    assert plain_world.project.list_parts(BUCKET, "k") == []
