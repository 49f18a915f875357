"""A store whose database is missing is refused, and secrets are never readable by others."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from calque.errors import ConfigInvalid, FailedPrecondition
from calque.store.embedded import EmbeddedStore, StoreOptions
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.migrate import migrate
from calque.store.open_project import open_project
from tests.program import COMMAND, run_program
from tests.servers.postgres import PostgresServer


def cli(*arguments: str, umask: int = -1) -> subprocess.CompletedProcess[str]:
    masked = f"import os\nos.umask({umask})\n" if umask >= 0 else ""
    return run_program(masked + COMMAND, *arguments)


def made(folder: Path, database: str | None = None) -> Path:
    EmbeddedStore.create(folder, StoreOptions(database=database)).close()
    return folder


def test_a_missing_file_is_not_replaced(tmp_path: Path) -> None:
    """Opening, checking and serving all say what is missing and make nothing."""
    folder = made(tmp_path / "s")
    (folder / "meta.db").rename(tmp_path / "elsewhere")
    with pytest.raises(FailedPrecondition, match=r"meta\.db is not there"):
        open_project(folder)
    for arguments in (["store", "fsck", str(folder)], ["serve", str(folder), "--port", "0"]):
        answer = cli(*arguments)
        assert answer.returncode != 0
        assert "meta.db" in answer.stderr
        assert "whole" not in answer.stdout + answer.stderr
    assert not (folder / "meta.db").exists()
    (tmp_path / "elsewhere").rename(folder / "meta.db")
    open_project(folder).close()


@pytest.mark.parametrize("content", [b"", "database"])
def test_an_empty_file_is_no_database(tmp_path: Path, content: bytes | str) -> None:
    """A file of no bytes, or a database without tables, is a lost one."""
    folder = made(tmp_path / "s")
    for file in folder.glob("meta.db*"):
        file.unlink()
    (folder / "meta.db").touch()
    if content == "database":
        engine = create_engine(f"sqlite:///{folder / 'meta.db'}")
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE something (x)"))
        engine.dispose()
    with pytest.raises(FailedPrecondition, match="empty"):
        open_project(folder)


@pytest.mark.parametrize("other", ["another store's", "knows no node"])
def test_a_database_of_another_store_is_refused(tmp_path: Path, other: str) -> None:
    """Its nodes are not registered there: the next collection would take all their pieces."""
    folder, foreign = made(tmp_path / "s"), tmp_path / "foreign.db"
    if other == "another store's":
        foreign = made(tmp_path / "t") / "meta.db"
    else:
        database = Database.open(f"sqlite:///{foreign}")
        migrate(database)
        database.close()
    for file in folder.glob("meta.db*"):
        file.unlink()
    shutil.copy(foreign, folder / "meta.db")
    for _ in range(2):
        with pytest.raises(FailedPrecondition, match=other):
            open_project(folder)
    assert cli("store", "fsck", str(folder)).returncode != 0


def test_a_file_named_by_its_url(tmp_path: Path) -> None:
    """The same for SQLite that lies elsewhere, also under a strange name."""
    place = tmp_path / "a folder" / "50% of #1?.db"
    place.parent.mkdir()
    folder = made(tmp_path / "s", f"sqlite:///{place}".replace("%", "%25").replace("?", "%3F"))
    files = list(place.parent.iterdir())
    assert files
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files)
    open_project(folder).close()
    for file in files:
        file.unlink(missing_ok=True)
    with pytest.raises(FailedPrecondition, match="is not there"):
        open_project(folder)
    assert list(place.parent.iterdir()) == []


def test_an_emptied_postgres_is_refused(tmp_path: Path, postgres: PostgresServer) -> None:
    """A database that lost its tables is not taken for a new one."""
    url = postgres.database()
    folder = made(tmp_path / "s", url)
    open_project(folder).close()
    database = Database.open(url)
    with database.engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    database.close()
    with pytest.raises(FailedPrecondition, match="empty"):
        open_project(folder)
    postgres.drop(url)


def test_a_file_that_vanishes_is_not_made_again(tmp_path: Path) -> None:
    """Under a running store: a new connection fails, and leaves no empty database behind."""
    file = tmp_path / "meta.db"
    database = Database.open(f"sqlite:///{file}")
    migrate(database)
    database.close()
    for each in tmp_path.glob("meta.db*"):
        each.unlink()
    with pytest.raises(Exception, match="unable to open"):
        migrate(database)
    database.close()
    assert not file.exists()


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """A file in a folder that does not exist: a setting is wrong, and the error says which."""
    with pytest.raises(ConfigInvalid, match=r"no/meta\.db"):
        Database.open(f"sqlite:///{tmp_path}/no/meta.db")


def test_secrets_are_their_owners_from_the_first_byte(tmp_path: Path) -> None:
    """Whatever the umask: nobody else may read the database, its log or the access."""
    answer = cli("store", "init", str(tmp_path / "s"), umask=0)
    assert answer.returncode == 0, answer.stderr
    with open_project(tmp_path / "s") as project:
        project.create_bucket("bucket")
        modes = {
            file.name: stat.S_IMODE(file.stat().st_mode)
            for file in (tmp_path / "s").iterdir()
            if file.is_file() and file.name != ".lock"
        }
    assert {"store.json", "access.json", "meta.db", "meta.db-wal"} <= modes.keys()
    assert set(modes.values()) == {0o600}


def test_a_leftover_does_not_lend_its_mode(tmp_path: Path) -> None:
    """A readable file that lies where a secret is prepared is not written into."""
    (tmp_path / "access.new").touch(mode=0o644)
    os.chmod(tmp_path / "access.new", 0o644)
    made(tmp_path)
    assert stat.S_IMODE((tmp_path / "access.json").stat().st_mode) == 0o600


def test_a_second_opening_keeps_the_locks_of_the_first(tmp_path: Path) -> None:
    """Another process that comes and goes does not take SQLite's log away from under us."""
    folder = made(tmp_path / "s")
    with open_project(folder) as first:
        first.create_bucket("before")
        open_project(folder).close()
        assert cli("store", "buckets", "--project", str(folder)).returncode == 0
        assert (folder / "meta.db-wal").exists()
        first.create_bucket("after")
        assert [bucket.name for bucket in first.list_buckets()] == ["after", "before"]
