"""Parts that are ranges of objects: references until the commit and after it, never bytes."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from calque.errors import (
    CalqueError,
    ConditionNotMatch,
    FailedPrecondition,
    InvalidInput,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    Unsupported,
)
from calque.store.metabase.model.schema import segment_copies, segment_slices
from calque.store.nodes.node import Node
from calque.store.project import Project
from calque.store.uplink.encryption.access import Prefix
from calque.store.uplink.encryption.blocks import EncryptionParameters
from calque.store.uplink.encryption.cipher import CipherSuite
from tests.store.world import in_parallel
from tests.store_client.world import BUCKET, OTHER, SEGMENT, SIZES, SMALL, World

RANGE = 130
"""Falls on no border of a segment (1,000 bytes) or of a block (100)."""


@pytest.fixture
def shared(any_database: str | None, make_world: Callable[..., World]) -> World:
    """A store on either database."""
    return make_world(database=any_database)


def row_count(world: World) -> tuple[int, int]:
    """How many whole copies and how many slices there are."""
    with world.store.endpoint.database.engine.connect() as connection:
        copies = len(connection.execute(segment_copies.select()).all())
        return copies, len(connection.execute(segment_slices.select()).all())


def copy_in_ranges(project: Project, size: int, step: int, target: str = "copy") -> None:
    """What boto3 does with an object above its threshold."""
    etag = project.stat(BUCKET, "k").etag
    upload = project.begin_multipart(OTHER, target)
    for number, offset in enumerate(range(0, size, step), 1):
        length = min(step, size - offset)
        copied = upload.copy_part(
            number, BUCKET, "k", offset=offset, length=length, if_match=etag, etag=f"e{number}"
        )
        assert copied == length
    assert [(part.number, part.etag) for part in upload.parts()] == [
        (number, f"e{number}") for number in range(1, len(range(0, size, step)) + 1)
    ]
    assert upload.commit().size == size


@pytest.mark.parametrize("name", ["one remote", "full segment", "three remote", "five and a bit"])
def test_ranges_of_a_whole_object_are_a_copy(world: World, name: str) -> None:
    """They join to one reference and the source's segments; no byte is read; the source may go."""
    content = os.urandom(SIZES[name])
    project = world.project
    made = project.upload(BUCKET, "k", content)
    pieces, reads = world.piece_count(), len(READS)
    copy_in_ranges(project, len(content), RANGE)
    assert len(READS) == reads
    assert world.piece_count() == pieces
    assert row_count(world) == (1, 0)
    assert project.stat(OTHER, "copy").segments == made.segments
    project.delete_object(BUCKET, "k")
    assert row_count(world) == (0, 0)
    assert project.download(OTHER, "copy").read() == content
    assert len(READS) > reads
    project.delete_object(OTHER, "copy")
    assert world.piece_count() == 0


READS: list[object] = []


@pytest.fixture(autouse=True)
def reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at a piece on a node is written down."""
    read = Node.read

    def note(self: Node, *args: object, **more: object) -> object:
        READS.append(args)
        return read(self, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Node, "read", note)


@pytest.mark.parametrize("step", [1, 99, RANGE, SEGMENT, 1700])
def test_an_inline_tail_and_ranges_of_any_size(plain_world: World, step: int) -> None:
    """What is kept inline is written anew, the rest referred to: byte for byte the same."""
    content = os.urandom(SEGMENT + 7) if step > 1 else os.urandom(80)
    plain_world.project.upload(BUCKET, "k", content)
    copy_in_ranges(plain_world.project, len(content), step)
    plain_world.project.delete_object(BUCKET, "k")
    assert plain_world.project.download(OTHER, "copy").read() == content


def test_parts_of_several_objects(world: World) -> None:
    """Uploaded and copied parts, of two objects, twice and overlapping: in ranges of every kind."""
    project = world.project
    one, two = os.urandom(3 * SEGMENT), os.urandom(2 * SEGMENT + 40)
    project.upload(BUCKET, "one", one)
    project.upload(BUCKET, "two", two)
    own = os.urandom(SEGMENT + 5)
    upload = project.begin_multipart(BUCKET, "k", metadata={"m": "1"})
    upload.copy_part(1, BUCKET, "one", offset=950, length=1100)
    upload.upload_part(2, own)
    upload.copy_part(3, BUCKET, "two")
    upload.copy_part(4, BUCKET, "one", offset=2999, length=1)
    upload.copy_part(5, BUCKET, "one", offset=5, length=0)
    made = upload.commit()
    whole = one[950:2050] + own + two + one[2999:]
    assert (made.size, dict(made.metadata)) == (len(whole), {"m": "1"})
    project.copy_object(BUCKET, "k", OTHER, "copy")
    project.move_object(OTHER, "copy", OTHER, "moved")
    project.delete_object(BUCKET, "one")
    for place in ((BUCKET, "k"), (OTHER, "moved")):
        assert project.download(*place).read() == whole
        for offset, length in ((0, 50), (49, 2), (1090, 30), (2000, 1500), (len(whole) - 1, 9)):
            got = project.download(*place, offset=offset, length=length).read()
            assert got == whole[offset : offset + length]
    project.delete_object(BUCKET, "k")
    assert project.download(OTHER, "moved").read() == whole
    world.check()
    project.delete_object(BUCKET, "two")
    project.delete_object(OTHER, "moved")
    assert world.piece_count() == 0


def test_ranges_that_touch_are_one(shared: World) -> None:
    """A slice for each segment that is covered, however many ranges brought it; what does not
    touch, or has something between, is not joined; the source may go."""
    project, content, own = shared.project, os.urandom(3 * SEGMENT), os.urandom(50)
    project.upload(BUCKET, "k", content)
    upload = project.begin_multipart(OTHER, "up")
    ends = [(start, min(start + RANGE, 2900)) for start in range(7, 2900, RANGE)]
    for number, (start, end) in enumerate(ends, 1):
        upload.copy_part(number, BUCKET, "k", offset=start, length=end - start)
    upload.upload_part(100, own)
    upload.copy_part(101, BUCKET, "k", offset=2900, length=50)
    upload.copy_part(102, BUCKET, "k", offset=2951, length=49)
    upload.copy_part(103, BUCKET, "k", offset=10, length=20)
    upload.copy_part(104, BUCKET, "k", offset=10, length=20)
    whole = content[7:2900] + own + content[2900:2950] + content[2951:] + content[10:30] * 2
    made = upload.commit()
    assert made.size == len(whole)
    assert row_count(shared) == (0, 3 + 4)
    assert made.segments == 3 + 1 + 4
    shared.check()
    reads = len(READS)
    assert project.download(OTHER, "up").read() == whole
    assert len(READS) > reads
    for offset in (0, 992, 993, 994, 2892, 2893, 2942):
        got = project.download(OTHER, "up", offset=offset, length=100).read()
        assert got == whole[offset : offset + 100]
    assert project.list_parts(OTHER, "up") == [], "where parts met is not known any more"
    project.copy_object(OTHER, "up", BUCKET, "again")
    project.delete_object(BUCKET, "k")
    project.delete_object(OTHER, "up")
    assert project.download(BUCKET, "again").read() == whole
    shared.check()
    project.delete_object(BUCKET, "again")
    assert shared.piece_count() == 0


def test_a_slice_of_a_slice_and_of_a_copy(world: World) -> None:
    """References name the row that holds the pieces, never another borrower."""
    project, content = world.project, os.urandom(3 * SEGMENT)
    project.upload(BUCKET, "k", content)
    project.copy_object(BUCKET, "k", BUCKET, "copy")
    first = project.begin_multipart(BUCKET, "first")
    first.copy_part(1, BUCKET, "copy", offset=150, length=2000)
    first.commit()
    second = project.begin_multipart(BUCKET, "second")
    second.copy_part(1, BUCKET, "first", offset=60, length=1000)
    second.commit()
    for key in ("k", "first", "copy"):
        project.delete_object(BUCKET, key)
        assert project.download(BUCKET, "second").read() == content[210:1210]
        world.check()
    project.delete_object(BUCKET, "second")
    assert world.piece_count() == 0


@pytest.mark.parametrize("fate", ["deleted", "replaced", "moved", "bucket gone"])
def test_what_becomes_of_a_source_before_the_commit(shared: World, fate: str) -> None:
    """The parts keep what they refer to alive; a whole object too, that was to be a copy."""
    project, content = shared.project, os.urandom(3 * SEGMENT)
    project.upload(BUCKET, "k", content)
    whole, part = project.begin_multipart(OTHER, "whole"), project.begin_multipart(OTHER, "part")
    whole.copy_part(1, BUCKET, "k")
    part.copy_part(1, BUCKET, "k", offset=1500, length=1000)
    match fate:
        case "deleted":
            project.delete_object(BUCKET, "k")
        case "replaced":
            project.upload(BUCKET, "k", os.urandom(SEGMENT))
        case "moved":
            project.move_object(BUCKET, "k", OTHER, "elsewhere")
        case "bucket gone":
            project.delete_bucket(BUCKET, with_objects=True)
    shared.check()
    assert whole.commit().size == part.commit().size * 3
    assert project.download(OTHER, "whole").read() == content
    assert project.download(OTHER, "part").read() == content[1500:2500]
    project.delete_object(OTHER, "whole")
    assert project.download(OTHER, "part").read() == content[1500:2500]
    for entry in list(project.list_objects(OTHER)):
        project.delete_object(OTHER, entry.key)
    shared.check()


def test_an_upload_that_is_given_up_lets_go(shared: World) -> None:
    """Aborted, dropped by the commit or replaced: the last reference takes the pieces along."""
    project = shared.project
    project.upload(BUCKET, "k", os.urandom(2 * SEGMENT))
    upload = project.begin_multipart(OTHER, "up")
    upload.copy_part(1, BUCKET, "k", offset=10, length=1500)
    upload.copy_part(2, BUCKET, "k", offset=10, length=20)
    project.delete_object(BUCKET, "k")
    assert shared.piece_count() == 2
    upload.upload_part(3, b"x")
    upload.commit(parts=[2, 3])
    assert shared.piece_count() == 1
    second = project.begin_multipart(OTHER, "second")
    second.copy_part(1, OTHER, "up", offset=1, length=19)
    project.delete_object(OTHER, "up")
    assert shared.piece_count() == 1
    second.abort()
    assert shared.piece_count() == 0


def test_what_is_refused(plain_world: World) -> None:
    """A stale etag, a range beyond the end, no such source, another cipher: nothing is left."""
    project = plain_world.project
    made = project.upload(BUCKET, "k", os.urandom(SEGMENT))
    upload = project.begin_multipart(BUCKET, "up")
    with pytest.raises(ConditionNotMatch):
        upload.copy_part(1, BUCKET, "k", if_match="00" * 16)
    for offset, length in ((0, SEGMENT + 1), (SEGMENT + 1, None), (SEGMENT, 1)):
        with pytest.raises(InvalidInput, match="it has 1000"):
            upload.copy_part(1, BUCKET, "k", offset=offset, length=length)
    with pytest.raises(InvalidInput, match="negative"):
        upload.copy_part(1, BUCKET, "k", offset=-1)
    with pytest.raises(InvalidInput, match="1 to 10000"):
        upload.copy_part(0, BUCKET, "k")
    with pytest.raises(NotFound, match="'missing'"):
        upload.copy_part(1, BUCKET, "missing")
    other = replace(SMALL, encryption=EncryptionParameters(CipherSuite.CHACHA20_POLY1305, 116))
    theirs = plain_world.through(project.access, other).begin_multipart(BUCKET, "theirs")
    with pytest.raises(Unsupported, match="cipher"):
        theirs.copy_part(1, BUCKET, "k")
    theirs.abort()
    assert upload.parts() == []
    upload.copy_part(1, BUCKET, "k", if_match=made.etag)
    upload.abort()
    with pytest.raises(NotFound):
        upload.copy_part(1, BUCKET, "k")


def test_rights_on_both_sides(plain_world: World) -> None:
    """Whoever may not read the source, or not write the target, refers to nothing."""
    project = plain_world.project
    for key in ("mine/a", "theirs/b"):
        project.upload(BUCKET, key, os.urandom(SEGMENT))
    mine = plain_world.through(project.access.restrict(Prefix(BUCKET, "mine/")))
    upload = mine.begin_multipart(BUCKET, "mine/up")
    with pytest.raises(PermissionDenied):
        upload.copy_part(1, BUCKET, "theirs/b")
    blind = plain_world.through(project.access.restrict(read=False))
    blind_upload = blind.begin_multipart(BUCKET, "mine/blind")
    with pytest.raises(PermissionDenied):
        blind_upload.copy_part(1, BUCKET, "mine/a")
    upload.copy_part(1, BUCKET, "mine/a")
    assert upload.commit().size == SEGMENT
    blind_upload.abort()


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_ranges_of_an_expiring_object_with_an_inline_tail(
    shared: World, order: tuple[int, int]
) -> None:
    """In one part or in several, whichever comes first: the copy has its bytes and its expiry."""
    project, size = shared.project, SEGMENT + 7
    content, soon = os.urandom(size), shared.clock.now().replace(microsecond=0) + timedelta(days=1)
    project.upload(BUCKET, "k", content, expires=soon)
    whole = project.begin_multipart(OTHER, "whole")
    assert whole.copy_part(1, BUCKET, "k") == size
    assert whole.commit().expires == soon
    ranges = project.begin_multipart(OTHER, "ranges")
    for number in order:
        first, last = ((0, SEGMENT), (SEGMENT, size))[number - 1]
        ranges.copy_part(number, BUCKET, "k", offset=first, length=last - first)
    assert ranges.commit().expires == soon
    tail = project.begin_multipart(OTHER, "tail")
    tail.copy_part(1, BUCKET, "k", offset=SEGMENT, length=0)
    tail.copy_part(2, BUCKET, "k", offset=SEGMENT)
    assert tail.commit().expires == soon
    for key, wanted in (("whole", content), ("ranges", content), ("tail", content[SEGMENT:])):
        assert project.download(OTHER, key).read() == wanted


def test_one_expiry_an_object(plain_world: World) -> None:
    """The first source gives its expiry to an upload that has none; another one is refused."""
    project = plain_world.project
    soon, later = (plain_world.clock.now() + timedelta(hours=hours) for hours in (1, 2))
    for key, expires in (("soon", soon), ("later", later), ("never", None)):
        project.upload(BUCKET, key, os.urandom(SEGMENT), expires=expires)
    upload = project.begin_multipart(BUCKET, "up")
    upload.copy_part(1, BUCKET, "soon", length=500)
    for key in ("later", "never"):
        with pytest.raises(FailedPrecondition, match="expires at another time"):
            upload.copy_part(2, BUCKET, key)
    upload.upload_part(2, os.urandom(SEGMENT))
    assert upload.commit().expires == soon
    stays = project.begin_multipart(BUCKET, "stays")
    stays.upload_part(1, b"x")
    with pytest.raises(FailedPrecondition, match="expires at another time"):
        stays.copy_part(2, BUCKET, "soon")
    stays.abort()


def test_a_hundred_borrowers_of_either_kind(plain_world: World) -> None:
    """Copies and objects with slices count together; one that has slices may have more."""
    project = plain_world.project
    project.upload(BUCKET, "k", os.urandom(2 * SEGMENT))
    for number in range(99):
        project.copy_object(BUCKET, "k", OTHER, f"c{number}")
    upload = project.begin_multipart(OTHER, "up")
    upload.copy_part(1, BUCKET, "k", offset=1, length=10)
    upload.copy_part(2, OTHER, "c3", offset=1, length=1500)
    with pytest.raises(ResourceExhausted, match="100"):
        project.copy_object(BUCKET, "k", OTHER, "one more")
    upload.commit()
    with pytest.raises(ResourceExhausted, match="100"):
        project.copy_object(OTHER, "up", OTHER, "one more")
    project.delete_object(OTHER, "c0")
    project.copy_object(OTHER, "up", OTHER, "one more")


def test_part_copies_race_everything(shared: World) -> None:
    """Ranges of one object copied while it, its copy and its heirs are deleted: nothing is lost."""
    project, content = shared.project, os.urandom(2 * SEGMENT)
    for turn in range(4):
        project.upload(BUCKET, "k", content)
        project.copy_object(BUCKET, "k", BUCKET, "copy")

        def build(number: int, turn: int = turn) -> bool:
            upload = project.begin_multipart(OTHER, f"t{turn}-{number}")
            try:
                upload.copy_part(
                    1, BUCKET, "copy" if number % 2 else "k", offset=number, length=900
                )
                upload.copy_part(2, BUCKET, "k", offset=900 + number, length=900)
                upload.commit()
            except (NotFound, FailedPrecondition, ConditionNotMatch):
                upload.abort()
                return False
            return True

        results = in_parallel(
            [
                *(lambda n=number: build(n) for number in range(4)),
                lambda: project.delete_object(BUCKET, "k"),
                lambda: project.delete_object(BUCKET, "copy"),
            ],
            threads=6,
        )
        failed = [each for each in results if isinstance(each, BaseException)]
        assert failed == []
        shared.check()
        for entry in project.list_objects(OTHER, f"t{turn}-"):
            number = int(entry.key[-1])
            expected = content[number : number + 1800]
            assert project.download(OTHER, entry.key).read() == expected
    keys = [entry.key for entry in project.list_objects(OTHER)]
    random.Random(1).shuffle(keys)
    results = in_parallel([lambda k=key: project.delete_object(OTHER, k) for key in keys])
    assert not [each for each in results if isinstance(each, CalqueError)]
    assert shared.piece_count() == 0
