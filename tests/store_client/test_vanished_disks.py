"""A disk that is unmounted, or swapped with another, is a failed node and never an empty one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from calque.errors import AlreadyExists, CalqueError, Unavailable
from calque.store.embedded import EmbeddedStore, StoreOptions
from calque.store.embedded.description import Description, read_json, write_json
from calque.store.nodes.erasure import Redundancy
from calque.store.open_project import open_project
from calque.store.upkeep.expire import sweep_store
from calque.store.upkeep.fsck import check_store
from tests.store_client.conftest import ONE, TWO_OF_FOUR
from tests.store_client.world import BUCKET, SEGMENT, World


@contextmanager
def unmounted(world: World, *numbers: int) -> Iterator[None]:
    """Bare mount points in the place of the nodes' folders."""
    roots = [world.store.folder / "nodes" / str(number) for number in numbers]
    for root in roots:
        root.rename(root.with_name(f"{root.name} on a shelf"))
        root.mkdir()
    try:
        yield
    finally:
        for root in roots:
            assert list(root.iterdir()) == []
            root.rmdir()
            root.with_name(f"{root.name} on a shelf").rename(root)


@pytest.mark.parametrize(("redundancy", "gone"), [(ONE, (0,)), (TWO_OF_FOUR, (1, 2))])
def test_no_upload_is_acknowledged_without_its_disks(
    make_world: Callable[..., World], redundancy: Redundancy, gone: tuple[int, ...]
) -> None:
    """What was acknowledged is there when the disks are back; the rest was refused."""
    world = make_world(redundancy)
    kept: dict[str, bytes] = {"before": os.urandom(3 * SEGMENT)}
    world.project.upload(BUCKET, "before", kept["before"])
    with unmounted(world, *gone):
        for number in range(5):
            content = os.urandom(SEGMENT)
            try:
                world.project.upload(BUCKET, f"during-{number}", content)
            except Unavailable as error:
                told = [str(error), *getattr(error, "__notes__", ())]
                assert any("mounted" in line for line in told)
            else:
                kept[f"during-{number}"] = content
    assert sorted(world.keys()) == sorted(kept)
    for key, content in kept.items():
        assert world.project.download(BUCKET, key).read() == content


def test_one_of_four_disks_may_be_away(make_world: Callable[..., World]) -> None:
    """Uploads, downloads and deletes go on without it, and nothing is lost or left."""
    world = make_world(TWO_OF_FOUR)
    world.project.upload(BUCKET, "doomed", os.urandom(2 * SEGMENT))
    content = os.urandom(2 * SEGMENT)
    with unmounted(world, 3):
        world.project.upload(BUCKET, "kept", content)
        assert world.project.download(BUCKET, "kept").read() == content
        world.project.delete_object(BUCKET, "doomed")
        sweep_store(world.store)
        # The pieces on the missing disk wait; they are not taken for deleted.
        assert world.store.endpoint.list_waiting_pieces()
        kinds = {finding.kind for finding in check_store(world.store, young=True)}
        assert kinds == {"node that does not answer"}
    sweep_store(world.store)
    assert not world.store.endpoint.list_waiting_pieces()


def test_two_disks_that_were_swapped_are_both_refused(make_world: Callable[..., World]) -> None:
    """Another node's root is no better than an empty one."""
    world = make_world(TWO_OF_FOUR)
    nodes = world.store.folder / "nodes"

    def swap() -> None:
        (nodes / "0").rename(nodes / "x")
        (nodes / "1").rename(nodes / "0")
        (nodes / "x").rename(nodes / "1")

    swap()
    with pytest.raises(Unavailable) as caught:
        world.project.upload(BUCKET, "k", os.urandom(SEGMENT))
    assert "another node's" in "".join(caught.value.__notes__)
    swap()
    world.project.upload(BUCKET, "k", os.urandom(SEGMENT))


def test_a_store_opens_without_a_disk(tmp_path: Path) -> None:
    """The opening writes nothing on the bare mount point and the other nodes serve."""
    options = StoreOptions(redundancy=TWO_OF_FOUR)
    with open_project(tmp_path / "s", options=options) as project:
        project.create_bucket(BUCKET)
        project.upload(BUCKET, "k", b"x" * 9000)
    root = tmp_path / "s" / "nodes" / "2"
    root.rename(tmp_path / "shelf")
    root.mkdir()
    with open_project(tmp_path / "s") as project:
        assert project.download(BUCKET, "k").read() == b"x" * 9000
        project.upload(BUCKET, "more", b"y" * 9000)
    assert list(root.iterdir()) == []


def test_a_root_belongs_to_one_store(tmp_path: Path) -> None:
    """A second store on the same root is refused before it has written anything."""
    shared = str(tmp_path / "disk")
    EmbeddedStore.create(tmp_path / "a", StoreOptions(nodes=[shared])).close()
    with pytest.raises(AlreadyExists, match="another store"):
        EmbeddedStore.create(tmp_path / "b", StoreOptions(nodes=[shared]))
    assert not EmbeddedStore.exists(tmp_path / "b")
    with open_project(tmp_path / "a") as project:
        project.create_bucket(BUCKET)
        project.upload(BUCKET, "k", b"x" * 9000)


def _forget_identities(folder: Path) -> None:
    """As a store of an earlier release, or one whose making was killed at the end, left it."""
    for file in folder.glob("nodes/*/calque-node"):
        file.unlink()
    description = read_json(folder / "store.json", Description.from_json)
    told = description.to_json()
    del told["identified"]
    write_json(folder / "store.json", told)


def test_roots_without_identities_get_them_once(tmp_path: Path) -> None:
    """An earlier store goes on working; an empty root that should hold pieces stays refused."""
    options = StoreOptions(redundancy=TWO_OF_FOUR)
    with open_project(tmp_path / "s", options=options) as project:
        project.create_bucket(BUCKET)
        project.upload(BUCKET, "k", b"x" * 9000)
    _forget_identities(tmp_path / "s")
    root = tmp_path / "s" / "nodes" / "2"
    root.rename(tmp_path / "shelf")
    root.mkdir()
    with open_project(tmp_path / "s") as project:
        project.upload(BUCKET, "more", b"y" * 9000)
    assert list(root.iterdir()) == []
    root.rmdir()
    (tmp_path / "shelf").rename(root)
    with open_project(tmp_path / "s") as project:
        project.upload(BUCKET, "again", b"z" * 9000)
    assert (root / "calque-node").exists()
    assert read_json(tmp_path / "s" / "store.json", Description.from_json).identified


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"zz" * 32, b"00" * 40_000])
def test_a_damaged_identity_is_none(plain_world: World, content: bytes) -> None:
    """Whatever stands in the file: it is this node's id or the node has failed."""
    file = plain_world.store.folder / "nodes" / "0" / "calque-node"
    right = file.read_bytes()
    file.write_bytes(content)
    with pytest.raises(CalqueError, match="another node's"):
        plain_world.project.upload(BUCKET, "k", os.urandom(SEGMENT))
    file.write_bytes(right)
    plain_world.project.upload(BUCKET, "k", os.urandom(SEGMENT))
