"""Everything below a prefix, copied or moved in one transaction."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from calque.errors import (
    AlreadyExists,
    FailedPrecondition,
    InvalidInput,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
)
from calque.store.metabase.copies import prefix_rows
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.project import Project
from calque.store.uplink.encryption.access import Prefix
from calque.store.uplink.verbs import move_prefix
from calque.store.uplink.verbs.move_prefix import PrefixMove
from tests.store.world import in_parallel
from tests.store_client.world import BUCKET, OTHER, SEGMENT, World

SIZES = {
    "a": 0, "b": 10, "c/d": SEGMENT, "c/e/f": 3 * SEGMENT + 20, "c/e/g": 64, "c//h": 5, "ä/ö": 7,
    "z": 200, "c/": 3,
}  # fmt: skip


@pytest.fixture
def shared(any_database: str | None, make_world: Callable[..., World]) -> World:
    """A store on either database."""
    return make_world(database=any_database)


@pytest.fixture
def filled(shared: World) -> tuple[World, dict[str, bytes]]:
    """Objects of every kind below ``old/``, others beside it."""
    contents = {name: os.urandom(size) for name, size in SIZES.items()}
    for name, content in contents.items():
        metadata = {"name": name} if len(content) % 2 else {}
        shared.project.upload(BUCKET, f"old/{name}", content, metadata=metadata)
    for key in ("old", "old-er/x", "older"):
        shared.project.upload(BUCKET, key, b"beside")
    return shared, contents


def below(project: Project, bucket: str, prefix: str) -> dict[str, bytes]:
    """Names relative to a prefix, and their bytes."""
    return {
        entry.key[len(prefix) :]: project.download(bucket, entry.key).read()
        for entry in project.list_objects(bucket, prefix)
    }


def test_objects_of_many_segments(
    filled: tuple[World, dict[str, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the keys of large objects go one by one, each segment gets its own all the same."""
    world, contents = filled
    monkeypatch.setattr(prefix_rows, "MOST_KEYS_CUT", 1)
    world.project.copy_prefix(BUCKET, "old/", OTHER, "copied/")
    world.project.move_prefix(OTHER, "copied/", BUCKET, "moved/")
    assert below(world.project, BUCKET, "moved/") == contents
    assert below(world.project, BUCKET, "old/") == contents


def test_a_move(filled: tuple[World, dict[str, bytes]]) -> None:
    """Names, bytes, metadata, times and copies: all there under the new prefix, at once."""
    world, contents = filled
    project = world.project
    project.copy_object(BUCKET, "old/c/e/f", OTHER, "copy")
    before = {entry.key: entry for entry in project.list_objects(BUCKET, "old/")}
    seen: list[tuple[int, int]] = []
    done = project.move_prefix(
        BUCKET, "old/", OTHER, "new/deep/", progress=lambda *told: seen.append(told)
    )
    assert done.objects == len(contents)
    assert seen[-1] == (len(contents), sum(SIZES.values()))
    assert below(project, OTHER, "new/deep/") == contents
    assert sorted(entry.key for entry in project.list_objects(BUCKET)) == [
        "old", "old-er/x", "older",
    ]  # fmt: skip
    for name in contents:
        moved, was = project.stat(OTHER, f"new/deep/{name}"), before[f"old/{name}"]
        assert (moved.etag, moved.created, moved.size) == (was.etag, was.created, was.size)
        assert dict(moved.metadata) == ({"name": name} if len(contents[name]) % 2 else {})
    assert project.download(OTHER, "copy").read() == contents["c/e/f"]
    project.move_prefix(OTHER, "new/deep/c/", BUCKET, "old/")
    assert below(project, BUCKET, "old/") == {
        name[2:]: content for name, content in contents.items() if name.startswith("c/")
    }


def test_a_copy(filled: tuple[World, dict[str, bytes]]) -> None:
    """No piece is written; either side may go, and the other is whole."""
    world, contents = filled
    project = world.project
    project.copy_object(BUCKET, "old/c/d", BUCKET, "old/copied")
    contents["copied"] = contents["c/d"]
    pieces = world.piece_count()
    assert project.copy_prefix(BUCKET, "old/", OTHER, "").objects == len(contents)
    assert world.piece_count() == pieces
    assert below(project, BUCKET, "old/") == below(project, OTHER, "") == contents
    world.check()
    project.delete_objects(BUCKET, [f"old/{name}" for name in contents])
    assert below(project, OTHER, "") == contents
    assert dict(project.stat(OTHER, "c//h").metadata) == {"name": "c//h"}
    project.delete_bucket(OTHER, with_objects=True)
    project.delete_objects(BUCKET, ["old", "old-er/x", "older"])
    assert world.piece_count() == 0


def test_objects_of_slices(shared: World) -> None:
    """What is made of ranges of others moves and copies as any other."""
    project, content = shared.project, os.urandom(3 * SEGMENT)
    project.upload(BUCKET, "source", content)
    upload = project.begin_multipart(BUCKET, "old/sliced")
    upload.copy_part(1, BUCKET, "source", offset=50, length=2000)
    upload.upload_part(2, content)
    upload.commit()
    project.copy_prefix(BUCKET, "old/", BUCKET, "copied/")
    project.move_prefix(BUCKET, "old/", BUCKET, "moved/")
    project.delete_object(BUCKET, "source")
    for prefix in ("copied/", "moved/"):
        shared.check()
        assert project.download(BUCKET, f"{prefix}sliced").read() == content[50:2050] + content
        project.delete_object(BUCKET, f"{prefix}sliced")
    assert shared.piece_count() == 0


@pytest.mark.parametrize("move", [True, False])
def test_what_stands_in_the_way(filled: tuple[World, dict[str, bytes]], move: bool) -> None:
    """The first of it is named and nothing is done; with overwrite it gives way."""
    world, contents = filled
    project = world.project
    theirs = os.urandom(2 * SEGMENT)
    for name in ("c/d", "z", "beside"):
        project.upload(OTHER, f"new/{name}", theirs)
    project.copy_object(OTHER, "new/z", OTHER, "kept")
    verb = project.move_prefix if move else project.copy_prefix
    with pytest.raises(AlreadyExists, match=r"archive/new/(c/d|z) "):
        verb(BUCKET, "old/", OTHER, "new/")
    assert below(project, BUCKET, "old/") == contents
    assert below(project, OTHER, "new/") == dict.fromkeys(("c/d", "z", "beside"), theirs)
    verb(BUCKET, "old/", OTHER, "new/", overwrite=True)
    assert below(project, OTHER, "new/") == {**contents, "beside": theirs}
    assert project.download(OTHER, "kept").read() == theirs
    assert below(project, BUCKET, "old/") == ({} if move else contents)


@pytest.mark.parametrize("move", [True, False])
@pytest.mark.parametrize("change", ["written", "replaced", "deleted", "moved away", "metadata"])
def test_what_is_written_meanwhile(
    filled: tuple[World, dict[str, bytes]], change: str, move: bool
) -> None:
    """Something below the prefix changes after it was read: nothing is done, and again works."""
    world, contents = filled
    project = world.project
    job = PrefixMove(project.session, BUCKET, "old/", OTHER, "new/", move=move)
    while job.prepare():
        pass
    match change:
        case "written":
            contents["new"] = project.download(BUCKET, "older").read()
            project.copy_object(BUCKET, "older", BUCKET, "old/new")
        case "replaced":
            contents["z"] = b"new"
            project.upload(BUCKET, "old/z", b"new")
        case "deleted":
            del contents["z"]
            project.delete_object(BUCKET, "old/z")
        case "moved away":
            project.move_object(BUCKET, "old/z", BUCKET, "elsewhere")
            del contents["z"]
        case "metadata":
            project.update_metadata(BUCKET, "old/ä/ö", {"new": "one"})
    with pytest.raises(FailedPrecondition, match="below the prefix"):
        job.finish()
    assert below(project, BUCKET, "old/") == contents
    assert below(project, OTHER, "new/") == {}
    verb = project.move_prefix if move else project.copy_prefix
    assert verb(BUCKET, "old/", OTHER, "new/").objects == len(contents)
    assert below(project, OTHER, "new/") == contents
    if change == "metadata":
        assert dict(project.stat(OTHER, "new/ä/ö").metadata) == {"new": "one"}


@pytest.mark.parametrize("change", ["deleted", "replaced"])
def test_what_goes_between_reading_and_preparing(
    filled: tuple[World, dict[str, bytes]], change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no fault of the caller's: the error says to begin again, which works."""
    world, contents = filled
    project = world.project
    client = project.session.metainfo
    stage = client.stage_prefix

    def write_first(request: pb.PrefixStageRequest) -> pb.PrefixStageResponse:
        if change == "deleted":
            contents.pop("z", None)
            project.delete_object(BUCKET, "old/z")
        else:
            contents["z"] = b"new"
            project.upload(BUCKET, "old/z", b"new")
        monkeypatch.undo()
        return stage(request)

    monkeypatch.setattr(client, "stage_prefix", write_first)
    with pytest.raises(FailedPrecondition, match="below the prefix"):
        project.move_prefix(BUCKET, "old/", OTHER, "new/")
    assert below(project, BUCKET, "old/") == contents
    assert project.move_prefix(BUCKET, "old/", OTHER, "new/").objects == len(contents)
    assert below(project, OTHER, "new/") == contents


def test_another_process_goes_on(filled: tuple[World, dict[str, bytes]]) -> None:
    """What was prepared is not prepared again, and a repeated end gives the same answer."""
    world, contents = filled
    project = world.project
    first = PrefixMove(project.session, BUCKET, "old/", OTHER, "new/", move=True)
    first._request.limit = 2
    assert first.prepare()
    assert first.prepare()
    second = PrefixMove(project.session, BUCKET, "old/", OTHER, "new/", move=True)
    second._request.limit = 3
    second.resume(first.operation)
    counts = []
    while second.prepare():
        counts.append(second.objects)
    assert counts == [7]
    done = second.finish()
    assert done.objects == len(contents)
    assert below(project, OTHER, "new/") == contents
    assert first.run() == done
    again = project.move_prefix(BUCKET, "old/", OTHER, "new/", resume=done.operation)
    assert again == done


def test_what_is_prepared_twice_counts_once(filled: tuple[World, dict[str, bytes]]) -> None:
    """A client that lost an answer sends a page again: it replaces itself."""
    world, contents = filled
    job = PrefixMove(world.project.session, BUCKET, "old/", OTHER, "new/", move=True)
    job._request.limit = 4
    assert job.prepare()
    job._request.cursor = b"\0"  # before every name
    assert job.prepare()
    assert job.objects == 4
    while job.prepare():
        pass
    assert (job.objects, job.finish().objects) == (len(contents), len(contents))
    assert below(world.project, OTHER, "new/") == contents


@pytest.mark.parametrize("move", [True, False])
def test_an_upload_under_way_at_a_new_name(
    filled: tuple[World, dict[str, bytes]], move: bool
) -> None:
    """It stands in nobody's way, and takes the place of what came when it is committed."""
    world, contents = filled
    project = world.project
    upload = project.begin_multipart(OTHER, "new/b")
    work = project.move_prefix if move else project.copy_prefix
    assert work(BUCKET, "old/", OTHER, "new/").objects == len(contents)
    assert below(project, OTHER, "new/") == contents
    upload.upload_part(1, b"later")
    upload.commit()
    assert below(project, OTHER, "new/") == {**contents, "b": b"later"}


def test_long_names_go_in_several_messages(
    plain_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What does not fit into one message is sent in several, and counted once."""
    monkeypatch.setattr(move_prefix, "_MOST_BYTES", 3000)
    contents = {f"{'a/' * 100}{number}": b"x" for number in range(7)}
    for name, content in contents.items():
        plain_world.project.upload(BUCKET, f"old/{name}", content)
    assert plain_world.project.move_prefix(BUCKET, "old/", OTHER, "").objects == 7
    assert below(plain_world.project, OTHER, "") == contents


def test_what_is_refused(filled: tuple[World, dict[str, bytes]]) -> None:
    """Prefixes inside each other, half names, nothing below, no bucket, names that get too long."""
    world, contents = filled
    project = world.project
    for old, new in (("old/", "old/"), ("old/", "old/c/"), ("old/c/", "old/"), ("", "x/")):
        with pytest.raises(InvalidInput, match="below the other"):
            project.move_prefix(BUCKET, old, BUCKET, new)
    with pytest.raises(InvalidInput, match="end in '/'"):
        project.move_prefix(BUCKET, "old", BUCKET, "new/")
    with pytest.raises(NotFound, match="photos/nothing/"):
        project.copy_prefix(BUCKET, "nothing/", OTHER, "new/")
    with pytest.raises(NotFound, match="destination bucket 'nowhere'"):
        project.copy_prefix(BUCKET, "old/", "nowhere", "")
    with pytest.raises(InvalidInput, match="1024"):
        project.copy_prefix(BUCKET, "old/", OTHER, "x" * 1021 + "/")
    with pytest.raises(InvalidInput):
        project.move_prefix("", "old/", OTHER, "")
    assert below(project, BUCKET, "old/") == contents


def test_rights(filled: tuple[World, dict[str, bytes]]) -> None:
    """A grant for the prefix is enough; one that may not delete moves and overwrites nothing."""
    world, contents = filled
    access = world.project.access
    reach = [Prefix(BUCKET, "old/"), Prefix(OTHER, "new/")]
    mine = world.through(access.restrict(*reach))
    with pytest.raises(PermissionDenied):
        mine.copy_prefix(BUCKET, "old/", OTHER, "other/")
    keeper = world.through(access.restrict(*reach, delete=False))
    with pytest.raises(PermissionDenied):
        keeper.move_prefix(BUCKET, "old/", OTHER, "new/")
    with pytest.raises(PermissionDenied):
        keeper.copy_prefix(BUCKET, "old/", OTHER, "new/", overwrite=True)
    assert keeper.copy_prefix(BUCKET, "old/", OTHER, "new/").objects == len(contents)
    mine.delete_objects(OTHER, [f"new/{name}" for name in contents])
    assert mine.move_prefix(BUCKET, "old/", OTHER, "new/").objects == len(contents)
    assert below(world.project, OTHER, "new/") == contents


def test_the_limit_of_copies(shared: World) -> None:
    """The 101st borrower of an original is refused with all others of its prefix."""
    project = shared.project
    project.upload(BUCKET, "old/k", os.urandom(SEGMENT))
    project.upload(BUCKET, "old/l", os.urandom(SEGMENT))
    for number in range(99):
        project.copy_object(BUCKET, "old/k", OTHER, f"c{number}")
    project.copy_object(BUCKET, "old/l", OTHER, "other")
    project.copy_prefix(BUCKET, "old/", OTHER, "last/")
    with pytest.raises(ResourceExhausted, match="100"):
        project.copy_prefix(BUCKET, "old/", OTHER, "new/")
    assert below(project, OTHER, "new/") == {}
    project.move_prefix(BUCKET, "old/", OTHER, "new/")
    sliced = project.begin_multipart(BUCKET, "s/k")
    sliced.copy_part(1, OTHER, "other", offset=1, length=500)
    sliced.commit()
    for number in range(97):
        project.copy_object(OTHER, "other", OTHER, f"o{number}")
    with pytest.raises(ResourceExhausted, match="100"):
        project.copy_prefix(BUCKET, "s/", OTHER, "new/s/")


def test_prefixes_race_single_objects(shared: World) -> None:
    """Moves there and back while others upload, copy and delete below: nothing is lost."""
    project = shared.project
    contents = {f"{number}": os.urandom(SEGMENT // 2 + number) for number in range(6)}
    for name, content in contents.items():
        project.upload(BUCKET, f"a/{name}", content)

    def swing() -> int:
        moved = 0
        for turn in range(6):
            old, new = ("a/", "b/") if turn % 2 == 0 else ("b/", "a/")
            try:
                project.move_prefix(BUCKET, old, BUCKET, new, overwrite=True)
                moved += 1
            except (FailedPrecondition, NotFound):
                pass
        return moved

    def write(number: int) -> Iterator[None]:
        for turn in range(5):
            name = f"{number}"
            for prefix in ("a/", "b/"):
                try:
                    project.copy_object(BUCKET, f"{prefix}{name}", OTHER, f"{name}-{turn}")
                    project.delete_object(BUCKET, f"{prefix}{name}")
                except (FailedPrecondition, NotFound):
                    continue
            project.upload(BUCKET, f"a/{name}", contents[name])
        yield

    results = in_parallel([swing, *(lambda n=n: list(write(n)) for n in range(3))], threads=4)
    assert [each for each in results if isinstance(each, BaseException)] == []
    shared.check()
    for entry in [*project.list_objects(BUCKET), *project.list_objects(OTHER)]:
        name = entry.key.removeprefix("a/").removeprefix("b/").partition("-")[0]
        assert project.download(entry.bucket, entry.key).read() == contents[name]
    there = {entry.key[2:] for entry in project.list_objects(BUCKET)}
    assert {"3", "4", "5"} <= there
