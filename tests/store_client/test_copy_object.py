"""Copy and move: no byte is read, everything still downloads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from calque.errors import (
    AlreadyExists,
    ConditionNotMatch,
    NotFound,
    ResourceExhausted,
    Unavailable,
)
from calque.operator.layers.chain import Call
from calque.store.nodes.node import Node
from calque.store.uplink.verbs.copy_object import Copy
from calque.store.uplink.verbs.rewrap import Conditions
from tests.store_client.world import BUCKET, OTHER, SEGMENT, SIZES, SMALL, World


@contextmanager
def nodes_out_of_reach(world: World) -> Iterator[None]:
    """Every request to a node fails: what works now touches no piece."""

    def dead(call: Call, proceed: Callable[[Call], Any]) -> Any:
        raise Unavailable("no node may be asked")

    directory = world.store.nodes
    whole = dict(directory._nodes)
    for node in directory.direct():
        directory._nodes[node.id] = Node(node.id, node.root.layer(dead), node.placement)
    try:
        yield
    finally:
        directory._nodes.update(whole)


@pytest.mark.parametrize("bucket", [BUCKET, OTHER])
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_a_copy_is_the_same_object(world: World, size: int, bucket: str) -> None:
    """Equal bytes, metadata and expiry, another key, etag and time; the source is untouched."""
    expires = datetime.now(UTC) + timedelta(days=3)
    content = os.urandom(size)
    source = world.project.upload(BUCKET, "a/b", content, metadata={"x": "1"}, expires=expires)
    pieces = world.piece_count()
    with nodes_out_of_reach(world):
        copy = world.project.copy_object(BUCKET, "a/b", bucket, "c/d/e")
    assert world.piece_count() == pieces
    assert world.project.download(bucket, "c/d/e").read() == content
    if size:
        middle = world.project.download(bucket, "c/d/e", offset=size // 3, length=size // 2).read()
        assert middle == content[size // 3 :][: size // 2]
    assert copy == world.project.stat(bucket, "c/d/e")
    assert world.project.stat(BUCKET, "a/b") == source
    same = replace(
        copy,
        bucket=BUCKET,
        key="a/b",
        etag=source.etag,
        version=source.version,
        created=source.created,
    )
    assert same == source
    assert copy.etag != source.etag


def test_the_original_goes_and_the_copy_stays(world: World) -> None:
    """Deleting the original hands its pieces to the copy; the last holder takes them along."""
    content = os.urandom(3 * SEGMENT + 5)
    world.project.upload(BUCKET, "a", content)
    pieces = world.piece_count()
    for name in ("b", "c"):
        world.project.copy_object(BUCKET, "a", OTHER, name)
    world.project.delete_object(BUCKET, "a")
    assert [world.project.download(OTHER, name).read() for name in "bc"] == [content, content]
    world.project.delete_object(OTHER, "b")
    assert world.project.download(OTHER, "c").read() == content
    assert world.piece_count() == pieces
    world.project.delete_object(OTHER, "c")
    assert world.piece_count() == 0


def test_copies_of_copies(world: World) -> None:
    """A chain of copies downloads, whichever links are deleted."""
    content = os.urandom(2 * SEGMENT)
    world.project.upload(BUCKET, "k0", content)
    for number in range(5):
        world.project.copy_object(BUCKET, f"k{number}", BUCKET, f"k{number + 1}")
    for number in (0, 2, 4, 1, 3):
        world.project.delete_object(BUCKET, f"k{number}")
        left = world.keys()
        assert all(world.project.download(BUCKET, key).read() == content for key in left)
    assert world.keys() == ["k5"]


def test_metadata_is_copied_or_replaced(plain_world: World) -> None:
    """Without new metadata the source's is carried over; with it the source keeps its own."""
    project = plain_world.project
    project.upload(BUCKET, "a", b"x", metadata={"old": "1"})
    assert dict(project.copy_object(BUCKET, "a", BUCKET, "b").metadata) == {"old": "1"}
    replaced = project.copy_object(BUCKET, "a", BUCKET, "c", metadata={"new": "2"})
    assert dict(replaced.metadata) == {"new": "2"}
    emptied = project.copy_object(BUCKET, "a", BUCKET, "d", metadata={})
    assert dict(emptied.metadata) == {}
    assert dict(project.stat(BUCKET, "a").metadata) == {"old": "1"}
    assert dict(project.stat(BUCKET, "c").metadata) == {"new": "2"}


def test_onto_itself(world: World) -> None:
    """Without new metadata nothing changes; with it only the metadata does."""
    content = os.urandom(2 * SEGMENT)
    made = world.project.upload(BUCKET, "a", content, metadata={"n": "1"})
    assert world.project.copy_object(BUCKET, "a", BUCKET, "a") == made
    changed = world.project.copy_object(BUCKET, "a", BUCKET, "a", metadata={"n": "2"})
    assert dict(changed.metadata) == {"n": "2"}
    assert world.project.download(BUCKET, "a").read() == content


def test_conditions_on_both_sides(plain_world: World) -> None:
    """Destination and source conditions are checked in the commit; a false one changes nothing."""
    project = plain_world.project
    source = project.upload(BUCKET, "a", b"new")
    target = project.upload(BUCKET, "b", b"old")
    wrong: list[dict[str, Any]] = [
        {"if_not_exists": True},
        {"if_match": source.etag},
        {"source_if_match": target.etag},
        {"source_if_unmodified_since": source.created - timedelta(seconds=1)},
    ]
    for conditions in wrong:
        with pytest.raises((ConditionNotMatch, AlreadyExists)):
            project.copy_object(BUCKET, "a", BUCKET, "b", **conditions)
    assert project.download(BUCKET, "b").read() == b"old"
    project.copy_object(
        BUCKET,
        "a",
        BUCKET,
        "b",
        if_match=target.etag,
        source_if_match=source.etag,
        source_if_unmodified_since=source.created + timedelta(seconds=1),
    )
    assert project.download(BUCKET, "b").read() == b"new"
    project.delete_object(BUCKET, "b")
    project.copy_object(BUCKET, "a", BUCKET, "b", if_not_exists=True)


def test_overwriting_by_copy(world: World) -> None:
    """Onto another object its pieces go; onto an original with copies, the copies live on."""
    old, new = os.urandom(2 * SEGMENT), os.urandom(SEGMENT)
    world.project.upload(BUCKET, "old", old)
    world.project.copy_object(BUCKET, "old", OTHER, "kept")
    world.project.upload(BUCKET, "new", new)
    world.project.copy_object(BUCKET, "new", BUCKET, "old")
    assert world.project.download(BUCKET, "old").read() == new
    assert world.project.download(OTHER, "kept").read() == old
    world.project.copy_object(OTHER, "kept", BUCKET, "new")
    assert world.project.download(BUCKET, "new").read() == old
    assert world.project.download(BUCKET, "old").read() == new
    world.project.upload(OTHER, "kept", b"x")
    assert world.project.download(BUCKET, "new").read() == old


def test_back_onto_the_ancestor(world: World) -> None:
    """A copy copied back over its own original keeps the bytes."""
    content = os.urandom(2 * SEGMENT + 50)
    world.project.upload(BUCKET, "a", content)
    world.project.copy_object(BUCKET, "a", BUCKET, "b")
    world.project.copy_object(BUCKET, "b", BUCKET, "a")
    assert world.project.download(BUCKET, "a").read() == content
    world.project.delete_object(BUCKET, "b")
    assert world.project.download(BUCKET, "a").read() == content


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_move(world: World, size: int) -> None:
    """A move keeps bytes, etag, metadata and creation time, and touches no piece."""
    content = os.urandom(size)
    source = world.project.upload(BUCKET, "a", content, metadata={"m": "1"})
    world.project.copy_object(BUCKET, "a", OTHER, "copy")
    with nodes_out_of_reach(world):
        moved = world.project.move_object(BUCKET, "a", OTHER, "x/y")
    assert moved == replace(source, bucket=OTHER, key="x/y", version=moved.version)
    with pytest.raises(NotFound):
        world.project.stat(BUCKET, "a")
    assert world.project.download(OTHER, "x/y").read() == content
    world.project.move_object(OTHER, "copy", BUCKET, "copy2")
    world.project.delete_object(OTHER, "x/y")
    assert world.project.download(BUCKET, "copy2").read() == content


def test_a_move_onto_another_object(world: World) -> None:
    """What stood there goes, unless if_not_exists."""
    world.project.upload(BUCKET, "a", os.urandom(2 * SEGMENT))
    world.project.upload(BUCKET, "b", b"new")
    with pytest.raises((ConditionNotMatch, AlreadyExists)):
        world.project.move_object(BUCKET, "b", BUCKET, "a", if_not_exists=True)
    world.project.move_object(BUCKET, "b", BUCKET, "a")
    assert world.project.download(BUCKET, "a").read() == b"new"
    assert world.keys() == ["a"]
    assert world.piece_count() == 0


def test_large_copies_go_by_pages(plain_world: World) -> None:
    """With more segments than fit one message the keys go in pages, and one call commits."""
    content = os.urandom(7 * SEGMENT + 3)
    plain_world.project.upload(BUCKET, "a", content, metadata={"m": "1"})
    paged = plain_world.through(plain_world.project.access, replace(SMALL, copy_page=3))
    copy = paged.prepare_copy(BUCKET, "a", BUCKET, "b")
    steps = []
    while (sent := copy.step()) is not None:
        steps.append(sent)
        if not copy.is_finished:
            with pytest.raises(NotFound):
                plain_world.project.stat(BUCKET, "b")
    assert steps == [3, 3, 2]
    assert dict(copy.result().metadata) == {"m": "1"}
    assert plain_world.project.download(BUCKET, "b").read() == content
    paged.move_object(BUCKET, "b", BUCKET, "c")
    assert plain_world.project.download(BUCKET, "c").read() == content


def drive(copy: Copy) -> list[int]:
    """What each step sent."""
    return list(iter(copy.step, None))


def test_a_killed_copy_is_resumed(plain_world: World) -> None:
    """Another process goes on where the satellite says the first one stopped."""
    content = os.urandom(7 * SEGMENT)
    plain_world.project.upload(BUCKET, "a", content)
    paged = plain_world.through(plain_world.project.access, replace(SMALL, copy_page=2))
    first = paged.prepare_copy(BUCKET, "a", BUCKET, "b")
    assert (first.step(), first.step()) == (2, 2)
    operation = first.operation
    assert operation is not None
    second = paged.prepare_copy(BUCKET, "a", BUCKET, "b")
    second.resume(operation)
    assert drive(second) == [2, 1]
    assert plain_world.project.download(BUCKET, "b").read() == content


def test_the_source_is_replaced_midway(plain_world: World) -> None:
    """A source that is overwritten between Begin and Finish fails the copy; nothing is written."""
    plain_world.project.upload(BUCKET, "a", os.urandom(4 * SEGMENT))
    paged = plain_world.through(plain_world.project.access, replace(SMALL, copy_page=2))
    copy = paged.prepare_copy(BUCKET, "a", BUCKET, "b", conditions=Conditions())
    copy.step()
    plain_world.project.upload(BUCKET, "a", b"other")
    with pytest.raises(ConditionNotMatch):
        drive(copy)
    with pytest.raises(NotFound):
        plain_world.project.stat(BUCKET, "b")


def test_the_101st_copy_is_refused(plain_world: World) -> None:
    """One ancestor has at most 100 live copies; after a delete there is room again."""
    plain_world.project.upload(BUCKET, "a", os.urandom(SEGMENT))
    for number in range(100):
        plain_world.project.copy_object(BUCKET, "a", OTHER, f"c{number}")
    with pytest.raises(ResourceExhausted, match="100"):
        plain_world.project.copy_object(BUCKET, "a", OTHER, "one too many")
    plain_world.project.delete_object(OTHER, "c7")
    plain_world.project.copy_object(BUCKET, "a", OTHER, "fits now")
