"""Engines for SQLite files."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Select, exc, literal_column, select, text

from calque.databases.errors import WRONG_FILE, is_one_of
from calque.databases.sqlite import open_sqlite
from calque.databases.transactions import WRITES


def test_a_missing_file_stays_missing(tmp_path: Path) -> None:
    """Unless it is to be made; names that mean something in a URL are names."""
    path = tmp_path / "100% ?mode=ro#x.db"
    engine = open_sqlite(path, create=False, busy_seconds=1)
    with pytest.raises(exc.OperationalError) as caught:
        engine.connect()
    assert is_one_of(caught.value, WRONG_FILE)
    assert not path.exists()
    made = open_sqlite(path, create=True, busy_seconds=1, pragmas=("foreign_keys=ON",))
    with made.connect() as connection:
        told = {
            name: connection.execute(text(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    made.dispose()
    assert told == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "busy_timeout": 1000,
    }
    assert path.exists()


def test_a_writer_holds_the_lock_from_its_first_statement(tmp_path: Path) -> None:
    """A reader does not; so a writer never fails half-way for having begun as one."""
    engine = open_sqlite(tmp_path / "x.db", create=True, busy_seconds=0.05)
    with engine.connect() as reader, engine.connect() as writer, engine.connect() as second:
        reader.execute(text("SELECT 1"))
        writer.execution_options(**{WRITES: True}).begin()
        with pytest.raises(exc.OperationalError):
            second.execution_options(**{WRITES: True}).begin()
    engine.dispose()


def test_many_open_a_new_file_at_once(tmp_path: Path) -> None:
    """The switch to the write-ahead log is waited for, though SQLite itself would not."""
    path = tmp_path / "x.db"
    failures: list[BaseException] = []

    def start() -> None:
        engine = open_sqlite(path, create=True, busy_seconds=30)
        try:
            with engine.connect() as connection:
                assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
        except BaseException as error:
            failures.append(error)
        engine.dispose()

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_file_that_cannot_be_switched_is_told_at_once(tmp_path: Path) -> None:
    """Only what another does is waited for: a file that is no database never becomes one."""
    path = tmp_path / "x.db"
    path.write_bytes(b"no database " * 1000)
    engine = open_sqlite(path, create=True, busy_seconds=10_000)
    with pytest.raises(exc.DatabaseError) as caught:
        engine.connect()
    assert isinstance(caught.value.orig, sqlite3.DatabaseError)
    engine.dispose()


def test_a_statement_is_compiled_once(tmp_path: Path) -> None:
    """Whatever file it is for: what one engine compiled others use, and each has its own rows."""
    engines = [open_sqlite(tmp_path / f"{n}.db", create=True, busy_seconds=1) for n in range(2)]
    statement: Select[Any] = select(literal_column("compiled_once")).select_from(text("t"))
    found, sizes = [], []
    for number, engine in enumerate(engines):
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE t (compiled_once INTEGER)"))
            connection.execute(text("INSERT INTO t VALUES (:n)"), {"n": number})
            found.append(connection.execute(statement).scalar())
            sizes.append(len(engine.get_execution_options()["compiled_cache"]))
        engine.dispose()
    assert found == [0, 1]
    assert sizes[0] == sizes[1]
