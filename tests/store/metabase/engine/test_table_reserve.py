"""A full disk under PostgreSQL: an error that says what to do, and deletes that work."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from calque.store.metabase.engine import table_reserve
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.migrate import migrate
from calque.store.metabase.engine.table_reserve import PAGES, TABLE
from tests.operator.services.fs.conftest import finish, own_mounts, start
from tests.servers.postgres import PostgresServer
from tests.store.world import Clock, World

__all__ = ["own_mounts"]

FULL_DISK = """
import os, subprocess, sys, tempfile
from pathlib import Path
folder = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=120m", "none", folder], check=True)
folder.chmod(0o755)
tempfile.tempdir = str(folder)
from calque.errors import ResourceExhausted
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.migrate import migrate
from calque.store.metabase.fsck import fsck
from calque.store.metabase.objects.delete_batch import DeleteBucket, delete_bucket
from tests.servers.postgres import running_postgres
from tests.store.world import Clock, World, THREE_REMOTE

def fill():
    try:
        with open(folder / "other", "ab", 0) as other:
            while True:
                other.write(bytes(4096))
    except OSError:
        pass

def upload_until_full(prefix):
    for number in range(10_000):
        try:
            world.upload(f"{prefix} {number}", THREE_REMOTE)
        except ResourceExhausted as error:
            return error.hint
    return "never full"

with running_postgres() as server:
    clock = Clock()
    database = Database.open(server.database(), clock=clock)
    migrate(database)
    world = World(database, clock)
    for number in range(40):
        world.upload(f"key {number}", THREE_REMOTE)
    for number in range(5):
        world.copy(world.at(f"key {number}"), world.at(f"copy {number}", "second"))
    fill()
    hints = {upload_until_full("more")}
    for number in range(40):
        world.delete(world.at(f"key {number}"))
    fill()
    hints.add(upload_until_full("again"))
    request = DeleteBucket(world.project_id, "first", everything=True)
    steps = list(delete_bucket(database, request))
    print(type(steps[-1]).__name__)
    print(*hints)
    (folder / "other").unlink()
    for number in range(5):
        assert world.download(world.at(f"copy {number}", "second"))
    world.upload("room again", bucket="second")
    print(fsck(database))
    database.close()
"""


def test_deletes_work_on_a_full_disk(own_mounts: tuple[str, ...]) -> None:
    """One by one, and a whole bucket after the disk was filled up again; promotions too."""
    # A short name: PostgreSQL's socket lies below it, and such a path has at most 107 letters.
    with tempfile.TemporaryDirectory(prefix="calque-full-") as folder:
        told = finish(start(FULL_DISK, Path(folder), prefix=own_mounts))
    deleted, hint, findings = told.splitlines()
    assert deleted == "BucketDeleted"
    assert hint.startswith("The disk of the metabase is full: make room there")
    assert findings == "[]"


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[Database]:
    """A database of its own: tests look at what is there and what is not."""
    url = postgres.database()
    opened = Database.open(url)
    migrate(opened)
    yield opened
    opened.close()
    postgres.drop(url)


def _pages(database: Database) -> int:
    with database.engine.connect() as connection:
        asked = text(f"SELECT coalesce(pg_relation_size(to_regclass('{TABLE}')), 0)")
        return int(connection.execute(asked).scalar_one()) // 8192


def test_it_is_made_given_up_and_made_again(database: Database) -> None:
    """By the first write; giving it up takes no room, and keeping it twice takes it once."""
    World(database, Clock())
    assert _pages(database) == PAGES
    reserve = table_reserve.TableReserve(database._connection)
    reserve.give_up()
    reserve.give_up()
    assert _pages(database) == 0
    reserve.keep()
    reserve.keep()
    assert _pages(database) == PAGES


def test_a_user_who_may_make_no_table_writes_all_the_same(
    database: Database, postgres: PostgresServer
) -> None:
    """The room is a help for the day on which the disk is full, and no condition."""
    name = f"guest_{database.engine.url.database}"
    with database.engine.begin() as connection:
        connection.execute(text(f'CREATE ROLE "{name}" LOGIN'))
        for what in ("ALL TABLES", "ALL SEQUENCES"):
            connection.execute(text(f'GRANT ALL ON {what} IN SCHEMA public TO "{name}"'))
    url = database.engine.url.set(username=name)
    guest = Database.open(url.render_as_string(hide_password=False))
    try:
        World(guest, Clock()).upload("key")
        assert _pages(database) == 0
    finally:
        guest.close()
        with database.engine.begin() as connection:
            connection.execute(text(f'DROP OWNED BY "{name}"'))
            connection.execute(text(f'DROP ROLE "{name}"'))
