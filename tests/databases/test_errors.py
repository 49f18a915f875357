"""Every error of a database is one of ours, by its code."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import create_engine, exc, text
from sqlalchemy.pool import QueuePool

from calque.databases.errors import (
    DISK_FULL,
    code_of,
    is_conflict,
    is_cut,
    is_one_of,
    kind_of,
)
from calque.errors import (
    AlreadyExists,
    CalqueError,
    IntegrityError,
    PermissionDenied,
    ResourceExhausted,
    Unavailable,
    Unexpected,
)
from calque.ledger.database import ledger_error
from calque.store.metabase.engine.errors import database_error


def sqlite_error(code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError("refused")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (sqlite_error(sqlite3.SQLITE_FULL), ResourceExhausted),
        (sqlite_error(sqlite3.SQLITE_IOERR_WRITE), Unavailable),
        (sqlite_error(sqlite3.SQLITE_READONLY_DIRECTORY), PermissionDenied),
        (sqlite_error(sqlite3.SQLITE_CORRUPT_INDEX), IntegrityError),
        (sqlite_error(sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY), AlreadyExists),
        (sqlite_error(sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY), Unexpected),
        (sqlite_error(sqlite3.SQLITE_BUSY_SNAPSHOT), Unavailable),
        (sqlite3.ProgrammingError("closed"), Unexpected),
        (psycopg.errors.lookup("23505")("x"), AlreadyExists),
        (psycopg.errors.lookup("23503")("x"), Unexpected),
        (psycopg.errors.lookup("25P03")("x"), Unavailable),
        (psycopg.errors.lookup("40P01")("x"), Unavailable),
        (psycopg.errors.lookup("42501")("x"), PermissionDenied),
        (psycopg.errors.lookup("42P01")("x"), Unexpected),
        (psycopg.errors.lookup("53100")("x"), ResourceExhausted),
        (psycopg.errors.lookup("55P03")("x"), Unavailable),
        (psycopg.errors.lookup("57P01")("x"), Unavailable),
        (psycopg.OperationalError("connection refused"), Unavailable),
        (psycopg.DatabaseError("server closed the connection unexpectedly"), Unavailable),
        (psycopg.DataError("NUL in text"), Unexpected),
        (exc.TimeoutError("pool"), Unavailable),
        (exc.CompileError("x"), Unexpected),
        (ValueError("x"), None),
    ],
    ids=repr,
)
def test_one_table(error: Exception, kind: type[CalqueError] | None) -> None:
    """A code is the same error to ledger and metabase, bare or in SQLAlchemy's wrapping."""
    assert kind_of(error) is kind
    if isinstance(error, sqlite3.Error | psycopg.Error):
        wrapped = exc.DBAPIError("SELECT :secret", {"secret": "s3cr3t"}, error)
        assert kind_of(wrapped) is kind
        assert code_of(wrapped) == code_of(error)
        for ours in (ledger_error(wrapped, "here"), database_error(wrapped)):
            assert type(ours) is kind
            assert "s3cr3t" not in str(ours)


def test_all_of_sqlalchemys_errors_are_known() -> None:
    """None of the library's families is left out, whatever the driver said."""
    for kind in vars(exc).values():
        if isinstance(kind, type) and issubclass(kind, exc.SQLAlchemyError):
            error = kind.__new__(kind)
            error.args = ("boom",)
            if isinstance(error, exc.DBAPIError):
                error.orig, error.connection_invalidated = Exception("boom"), False
            assert kind_of(error) in (Unavailable, Unexpected)


def test_what_may_be_tried_again() -> None:
    """Busy and locked, with their extended codes; serialization, deadlock, a row inserted first."""
    again = [sqlite_error(sqlite3.SQLITE_BUSY_RECOVERY), sqlite_error(sqlite3.SQLITE_LOCKED)]
    again += [psycopg.errors.lookup(state)("x") for state in ("40001", "40P01", "23505")]
    assert all(map(is_conflict, again))
    never = [sqlite_error(sqlite3.SQLITE_FULL), psycopg.errors.lookup("23502")("x"), ValueError()]
    assert not any(map(is_conflict, never))


def test_a_real_full_database(tmp_path: Path) -> None:
    """A database without room is known by its code, and the hint says what to do."""
    engine = create_engine(f"sqlite:///{tmp_path / 'x.db'}", poolclass=QueuePool)
    with engine.connect() as connection:
        connection.execute(text("CREATE TABLE t (x)"))
        connection.execute(text("PRAGMA max_page_count=2"))
        with pytest.raises(exc.DBAPIError) as caught:
            connection.execute(text("INSERT INTO t VALUES (zeroblob(1000000))"))
    engine.dispose()
    assert is_one_of(caught.value, DISK_FULL)
    for ours in (ledger_error(caught.value, "here"), database_error(caught.value)):
        assert isinstance(ours, ResourceExhausted)
        assert "make room" in (ours.hint or "")


def test_a_cut_connection() -> None:
    """By the server's word, or since the driver closed it."""

    class Closed:
        closed = True

    assert is_cut(psycopg.errors.lookup("57P01")("x"), None)
    assert is_cut(psycopg.OperationalError("x"), Closed())
    assert not is_cut(psycopg.errors.lookup("57014")("x"), None)
