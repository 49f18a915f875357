"""Room that is kept for deletes: made, grown, given up, and enough when the disk is full."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from calque.store.metabase.engine.reserve import FOR_DELETES, LOG_SIZE, Reserve
from tests.operator.services.fs.conftest import finish, own_mounts, start

__all__ = ["own_mounts"]

FULL_DISK = """
import subprocess, sys
from pathlib import Path
folder = sys.argv[1]
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", folder], check=True)
from calque.errors import ResourceExhausted
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.migrate import migrate
from calque.store.metabase.fsck import fsck
from calque.store.metabase.objects.delete_batch import DeleteBucket, delete_bucket
from tests.store.world import Clock, World
clock = Clock()
database = Database.open(f"sqlite:///{folder}/meta.db", clock=clock)
migrate(database)
world = World(database, clock)

def fill(count):
    try:
        while True:
            world.upload(f"key {count}")
            count += 1
    except ResourceExhausted:
        pass
    try:
        with open(Path(folder) / "other", "ab", 0) as other:
            while True:
                other.write(b"x")
    except OSError:
        return count

count = fill(0)
for number in range(0, count, 2):
    world.delete(world.at(f"key {number}"))
count = fill(count)
steps = list(delete_bucket(database, DeleteBucket(world.project_id, "first", everything=True)))
print(count > 20, type(steps[-1]).__name__, fsck(database))
"""


def test_deletes_work_on_a_full_disk(tmp_path: Path, own_mounts: tuple[str, ...]) -> None:
    """One by one, and a whole bucket after the disk was filled up again."""
    out = finish(start(FULL_DISK, tmp_path, prefix=own_mounts))
    assert out.split(maxsplit=2) == ["True", "BucketDeleted", "[]\n"]


OPENED_ANEW = """
import os, subprocess, sys
from pathlib import Path
folder = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(folder)], check=True)
from calque.errors import ResourceExhausted
from calque.store.open_project import open_project
with open_project(folder / "store") as project:
    project.create_bucket("bucket")
    try:
        for count in range(1000):
            project.upload("bucket", f"key {count}", os.urandom(100_000))
    except ResourceExhausted:
        pass
try:
    with open(folder / "other", "ab", 0) as other:
        while True:
            other.write(b"x")
except OSError:
    pass
with open_project(folder / "store", create=False) as project:
    told = project.delete_object("bucket", "key 0")
with open_project(folder / "store", create=False) as project:
    print(told, project.delete_bucket("bucket", with_objects=True) == count - 1)
"""


def test_a_store_is_opened_on_a_full_disk(tmp_path: Path, own_mounts: tuple[str, ...]) -> None:
    """By another process than the one that filled it: else nobody could delete anything."""
    out = finish(start(OPENED_ANEW, tmp_path, prefix=own_mounts))
    assert out.split() == ["True", "True"]


@pytest.fixture
def database_of(tmp_path: Path) -> Callable[[int], Path]:
    """A file in place of a database, of the size asked for."""

    def make(size: int) -> Path:
        file = tmp_path / "meta.db"
        file.write_bytes(bytes(size))
        return file

    return make


def _reserved(file: Path) -> int:
    reserve = file.with_name("meta.db-reserve")
    return reserve.stat().st_size if reserve.exists() else 0


def test_it_grows_with_the_database(database_of: Callable[[int], Path]) -> None:
    """As large as writing the log back may take, and no larger."""
    for size, wanted in ((0, 0), (100_000, 100_000), (20 * LOG_SIZE, LOG_SIZE)):
        file = database_of(size)
        Reserve(file).keep()
        assert _reserved(file) == wanted + FOR_DELETES
    assert file.with_name("meta.db-reserve").stat().st_blocks * 512 >= LOG_SIZE


def test_it_is_given_up_and_made_again(database_of: Callable[[int], Path]) -> None:
    """Giving up what is not there is no error."""
    file = database_of(10)
    reserve = Reserve(file)
    reserve.keep()
    reserve.give_up()
    reserve.give_up()
    assert _reserved(file) == 0
    reserve.keep()
    assert _reserved(file) == 10 + FOR_DELETES


def test_without_a_folder_nothing_happens(database_of: Callable[[int], Path]) -> None:
    """A disk that is not there any more is for the database to report."""
    file = database_of(10)
    reserve = Reserve(file)
    shutil.rmtree(file.parent)
    reserve.keep()
    reserve.give_up()
    assert not file.parent.exists()
