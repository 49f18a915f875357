"""Long copies whose process is killed midway: resumed by another, or swept."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from calque.errors import NotFound
from calque.store.embedded import EmbeddedStore
from calque.store.metabase.model.records import now_us
from calque.store.open_project import open_project
from calque.store.serve import serve_store
from calque.store.upkeep.expire import sweep_store
from calque.store.upkeep.fsck import check_store
from tests.program import Program
from tests.store_client.world import BUCKET, OTHER, SEGMENT, SMALL

SEGMENTS = 9

COPIER = """
import sys, time
from dataclasses import replace
from calque.store.open_project import open_project
from tests.program import Program
from tests.store_client.world import SMALL

where, resumed = sys.argv[1], sys.argv[2]
project = open_project(where, settings=replace(SMALL, copy_page=2))
copy = project.prepare_copy("photos", "k", "archive", "copy")
if resumed:
    copy.resume(bytes.fromhex(resumed))
    steps = list(iter(copy.step, None))
    print(*steps, copy.result().etag, flush=True)
else:
    copy.step(), copy.step()
    print(copy.operation.hex(), flush=True)
    time.sleep(1000)
"""


def copier(where: str, access: str, operation: str = "") -> Program:
    return Program(COPIER, where, operation, env={**os.environ, "CALQUE_ACCESS": access})


def killed_midway(where: str, access: str) -> str:
    """The operation of a copy whose process was killed after four of nine keys."""
    with copier(where, access) as process:
        operation = process.stdout.readline().strip()
        process.kill()
        assert process.wait() == -signal.SIGKILL
    assert operation
    return operation


def resumed(where: str, access: str, operation: str) -> list[str]:
    """What another process says that goes on with the copy: its steps, then the etag."""
    with copier(where, access, operation) as process:
        said, _ = process.communicate()
    return said.split()


@pytest.fixture
def content() -> bytes:
    return os.urandom(SEGMENTS * SEGMENT)


@pytest.fixture
def folder(tmp_path: Path, content: bytes) -> Path:
    """A store with an object of nine segments."""
    place = tmp_path / "store"
    with open_project(place, settings=SMALL) as project:
        for bucket in (BUCKET, OTHER):
            project.create_bucket(bucket)
        project.upload(BUCKET, "k", content)
    return place


@pytest.mark.parametrize("way", ["in the folder", "over gRPC"])
def test_a_killed_copy_goes_on_in_another_process(folder: Path, content: bytes, way: str) -> None:
    """It sends only the keys that are missing, and the copy is whole; again it is the same."""
    store = EmbeddedStore.open(folder)
    try:
        access = store.grant().serialize()
        with serve_store(store) as served:
            where = served.address if way == "over gRPC" else str(folder)
            operation = killed_midway(where, access)
            with open_project(folder) as project, pytest.raises(NotFound):
                project.stat(OTHER, "copy")
            *steps, etag = resumed(where, access, operation)
            assert steps == ["2", "2", "1"]
            assert resumed(where, access, operation) == [etag]
            with open_project(folder) as project:
                assert project.stat(OTHER, "copy").etag == etag
                assert project.download(OTHER, "copy").read() == content
        assert check_store(store, young=True) == []
    finally:
        store.close()


def swept(folder: Path, hours: int) -> int:
    """How many operations a sweep removes so many hours from now."""
    store = EmbeddedStore.open(folder, clock=lambda: now_us() + hours * 3600 * 1_000_000)
    try:
        operations = sweep_store(store).abandoned_operations
        assert check_store(store, young=True) == []
        return operations
    finally:
        store.close()


def test_an_abandoned_copy_is_swept(folder: Path, content: bytes) -> None:
    """Not before its day is over; then its keys go, and every key must be sent again."""
    store = EmbeddedStore.open(folder)
    access = store.grant().serialize()
    store.close()
    operation = killed_midway(str(folder), access)
    assert [swept(folder, hours) for hours in (0, 23, 25, 25)] == [0, 0, 1, 0]
    with open_project(folder) as project:
        with pytest.raises(NotFound):
            project.stat(OTHER, "copy")
        assert project.download(BUCKET, "k").read() == content
    *steps, _ = resumed(str(folder), access, operation)
    assert steps == ["2", "2", "2", "2", "1"]
