"""Pages of a listing: each costs a page, and each shows what is there now."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import pytest
from google.protobuf.message import Message

from calque.store.metainfo import Metainfo
from calque.store.project import Project
from calque.store.uplink.levels import Directory, LevelCache, sort_items
from calque.store.uplink.session import Session
from calque.store.uplink.verbs.list_objects import read_level
from tests.store_client.test_list_objects import KEYS, by_bytes, one_level
from tests.store_client.world import BUCKET, SMALL, World


class Counting(Metainfo):
    """A satellite that counts what it lists."""

    def __init__(self, satellite: Metainfo) -> None:
        self.satellite = satellite
        self.listed: Counter[str] = Counter()

    def call(self, name: str, request: Message) -> Message:
        answer = self.satellite.call(name, request)
        if name == "ListObjects":
            self.listed["calls"] += 1
            self.listed["items"] += len(answer.items)  # type: ignore[attr-defined]
        return answer

    def close(self) -> None:
        self.satellite.close()


@pytest.fixture
def counted(plain_world: World) -> tuple[World, Project, Counting]:
    """A project whose listings are counted, beside that of the world, which writes."""
    satellite = Counting(plain_world.store.endpoint)
    grant = plain_world.store.grant()
    session = Session(
        satellite, bytes(grant.api_key), grant.encryption, nodes=plain_world.store.nodes,
        settings=SMALL,
    )  # fmt: skip
    return plain_world, Project(session, grant), satellite


def pages(project: Project, size: int, **more: object) -> Iterator[list[str]]:
    """A listing as S3 does it: each page begins behind the last key of the one before."""
    start = ""
    while True:
        page: list[str] = []
        for entry in project.list_objects(BUCKET, start_after=start, **more):  # type: ignore[arg-type]
            page.append(entry.key)
            if len(page) == size:
                break
        yield page
        if len(page) < size:
            return
        start = page[-1]


def test_pages_of_a_large_level_read_it_once(counted: tuple[World, Project, Counting]) -> None:
    """40 pages of one folder: every name is listed once, and each page asks once."""
    world, project, satellite = counted
    keys = [f"folder/{number:03}" for number in range(120)]
    for key in keys:
        world.project.upload(BUCKET, key, b"")
    assert [key for page in pages(project, 3) for key in page] == keys
    # The root and the folder, whose pages have three names each.
    assert satellite.listed["items"] == 1 + len(keys)
    assert satellite.listed["calls"] <= 2 * 41 + 120 / 3


@pytest.mark.parametrize("recursive", [True, False])
def test_pages_show_what_a_walk_shows(
    counted: tuple[World, Project, Counting], recursive: bool
) -> None:
    """From every key on, whatever the size of a page; directories too, where they are shown."""
    world, project, _ = counted
    for key in KEYS:
        world.project.upload(BUCKET, key, b"")
    expected = by_bytes(KEYS) if recursive else one_level(KEYS, "")
    for size in (1, 2, 7, 100):
        listed = [key for page in pages(project, size, recursive=recursive) for key in page]
        assert listed == expected
    for prefix in ("a", "a/", "b/1", "z"):
        walked = [each.key for each in project.list_objects(BUCKET, prefix, recursive=recursive)]
        assert walked == [
            key
            for key in (
                by_bytes(KEYS) if recursive else one_level(KEYS, prefix[: prefix.rfind("/") + 1])
            )
            if key.startswith(prefix)
        ]


def test_a_page_shows_what_was_written_before_it(
    counted: tuple[World, Project, Counting],
) -> None:
    """Uploads, deletes, moves, copies and new metadata are in the next page, though it is kept."""
    world, project, _ = counted
    writer = world.project
    for key in ("a", "b", "c"):
        writer.upload(BUCKET, key, b"1", metadata={"v": "1"})

    def listed() -> dict[str, tuple[int, str]]:
        found = project.list_objects(BUCKET, with_metadata=True)
        return {each.key: (each.size, each.metadata["v"]) for each in found}  # type: ignore[union-attr]

    assert listed() == dict.fromkeys("abc", (1, "1"))
    writer.upload(BUCKET, "d", b"22", metadata={"v": "2"})
    assert listed()["d"] == (2, "2")
    writer.delete_object(BUCKET, "a")
    assert "a" not in listed()
    writer.move_object(BUCKET, "b", BUCKET, "e")
    assert list(listed()) == ["c", "d", "e"]
    writer.update_metadata(BUCKET, "c", {"v": "3"})
    assert listed()["c"] == (1, "3")
    writer.copy_object(BUCKET, "c", BUCKET, "c", metadata={"v": "4"})
    assert listed()["c"] == (1, "4")
    writer.upload(BUCKET, "c", b"1", metadata={"v": "5"})
    assert listed()["c"] == (1, "5")
    writer.delete_objects(BUCKET, ["d"])
    assert list(listed()) == ["c", "e"]


def test_a_page_shows_nothing_that_has_expired(counted: tuple[World, Project, Counting]) -> None:
    """Nobody writes when an object's time is over; folders of such objects go too."""
    world, project, _ = counted
    soon = world.clock.now() + timedelta(hours=1)
    world.project.upload(BUCKET, "stays", b"")
    for key in ("goes", "folder/goes"):
        world.project.upload(BUCKET, key, b"", expires=soon)
    for recursive in (True, False):
        assert len(list(project.list_objects(BUCKET, recursive=recursive))) == 3
    world.clock.ahead = timedelta(hours=2)
    for recursive in (True, False):
        entries = project.list_objects(BUCKET, recursive=recursive)
        assert [each.key for each in entries] == ["stays"]


def test_an_older_level_may_do(counted: tuple[World, Project, Counting]) -> None:
    """With an age that is good enough, pages cost one reading also while others write."""
    world, project, satellite = counted
    for number in range(30):
        world.project.upload(BUCKET, f"{number:02}", b"")
    seen = []
    for page in pages(project, 5, max_age=600.0):
        seen += page
        world.project.upload(BUCKET, "99", b"")
    assert seen == [f"{number:02}" for number in range(30)]
    assert satellite.listed["items"] == 30
    assert "99" in [each.key for each in project.list_objects(BUCKET)]


def test_every_key_once_while_others_write(counted: tuple[World, Project, Counting]) -> None:
    """Keys that stay are in the pages once each, whatever comes and goes between two pages."""
    world, project, _ = counted
    stays = [f"{number:02}/s" for number in range(20)] + [f"{number:02}-s" for number in range(20)]
    for key in stays:
        world.project.upload(BUCKET, key, b"")
    chance = random.Random(5)
    seen: list[str] = []
    for page in pages(project, 4):
        seen += page
        other = f"{chance.randrange(20):02}{chance.choice('/-0')}x"
        if not world.project.delete_object(BUCKET, other):
            world.project.upload(BUCKET, other, b"")
    assert sorted(key for key in seen if key.endswith("s")) == sorted(stays)
    assert seen == by_bytes(seen)


def test_levels_are_kept_within_bounds(counted: tuple[World, Project, Counting]) -> None:
    """The level that was used least goes first; one that is too large is not kept."""
    world, project, _ = counted
    for key in ("a/1", "b/1", "c/1"):
        world.project.upload(BUCKET, key, b"")
    session = project.session

    def level(name: str) -> tuple[Directory, object]:
        path = session.access.below(BUCKET, name)
        directory = Directory(name, path.encrypted, path.key)
        return directory, read_level(session, BUCKET, directory, 0)

    cost = sort_items(Directory("", b"", session.access.below(BUCKET, "").key), [], b"").cost
    assert cost == 0
    one = level("a/")[1].cost  # type: ignore[attr-defined]
    session.levels = LevelCache(2 * one + one // 2)
    places = {name: level(name)[0] for name in ("a/", "b/")}
    session.levels.get(BUCKET, places["a/"].encrypted)
    places["c/"] = level("c/")[0]
    there = {name for name, each in places.items() if session.levels.get(BUCKET, each.encrypted)}
    assert there == {"a/", "c/"}
    session.levels = LevelCache(one - 1)
    assert session.levels.get(BUCKET, level("a/")[0].encrypted) is None
