"""Files that become durable by the batch: in which order, and what is left when that fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from calque.errors import Aborted, NotFound, ResourceExhausted
from calque.operator.service import Aside
from calque.transfer.run.copies.durability import DurableBatch
from calque.values import Metadata


def test_files_are_told_only_when_a_sync_has_ended() -> None:
    """Bytes, sync, names, sync, and then the row; one sync for many files."""
    told: list[str] = []

    class File:
        device = 1

        def __init__(self, name: str) -> None:
            self.name = name

        def sync(self) -> None:
            told.append("sync")

        def hold(self):  # type: ignore[no-untyped-def]
            return lambda: told.append("sync")

        def publish(self) -> Metadata:
            told.append(f"publish {self.name}")
            return Metadata(path=self.name)

        def discard(self) -> None:
            told.append(f"discard {self.name}")

    def add(batch: DurableBatch, name: str) -> None:
        file: Aside = File(name)
        batch.add(file, 1, lambda ended: told.append(f"ended {name}"))

    batch = DurableBatch("batch")
    for name in "ab":
        add(batch, name)
    assert told == []
    batch.flush()
    assert told == ["sync", "publish a", "publish b", "sync", "ended a", "ended b"]
    told.clear()
    add(DurableBatch("each"), "c")
    assert told == ["sync", "publish c", "sync", "ended c"]
    told.clear()
    add(DurableBatch("none"), "d")
    assert told == ["publish d", "ended d"]


def test_a_sync_that_fails_leaves_no_file_and_says_so() -> None:
    """The old files stay, what was written aside is removed, and every row is a failure."""
    ended: list[object] = []

    class File:
        device = 1
        left = True

        def sync(self) -> None:
            raise ResourceExhausted("the disk is full")

        def hold(self):  # type: ignore[no-untyped-def]
            raise AssertionError("nothing was synced")

        def publish(self) -> Metadata:
            raise AssertionError("its bytes are not on the disk")

        def discard(self) -> None:
            self.left = False

    file = File()
    batch = DurableBatch("batch")
    batch.add(file, 1, ended.append)
    batch.flush()
    assert isinstance(ended[0], ResourceExhausted)
    assert not file.left


@pytest.mark.parametrize("when", ["waiting", "syncing", "after"])
def test_files_that_are_given_up_are_removed(when: str, tmp_path: Path) -> None:
    """Whatever their batch is at: those without a name are removed, which is no failure of theirs
    that a row would tell."""
    ended: list[object] = []
    batch = DurableBatch("batch")

    class File:
        device = 1

        def __init__(self, name: str) -> None:
            self.path = tmp_path / name
            self.path.touch()

        def sync(self) -> None:
            if when == "syncing":
                batch.give_up()
                raise NotFound("it was removed meanwhile")

        def hold(self):  # type: ignore[no-untyped-def]
            return lambda: None

        def publish(self) -> Metadata:
            raise AssertionError("it was given up before it had its name")

        def discard(self) -> None:
            self.path.unlink(missing_ok=True)

    if when == "after":
        batch.give_up()
    for name in "ab":
        batch.add(File(name), 1, ended.append)
    if when == "waiting":
        batch.give_up()
    batch.flush()
    assert list(tmp_path.iterdir()) == []
    assert [type(each) for each in ended] == [Aborted, Aborted]


def test_names_that_could_not_be_synced_are_not_told_as_copied() -> None:
    """The files stand under their names, and yet a power cut may take them: each is a failure."""
    ended: list[object] = []

    class File:
        device = 1

        def __init__(self, name: str) -> None:
            self.name = name

        def sync(self) -> None:
            pass

        def hold(self):  # type: ignore[no-untyped-def]
            def sync_names() -> None:
                raise ResourceExhausted("the disk is full")

            return sync_names

        def publish(self) -> Metadata:
            return Metadata(path=self.name)

        def discard(self) -> None:
            raise AssertionError("it has its name")

    batch = DurableBatch("batch")
    for name in "ab":
        batch.add(File(name), 1, ended.append)
    batch.flush()
    assert [type(each) for each in ended] == [ResourceExhausted] * 2
