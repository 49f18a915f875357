"""Pools of connections: one for SQLAlchemy's own sessions, one as the metabase drives them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import URL, Engine, event, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from calque.databases.postgres import open_postgres
from calque.databases.sqlite import open_sqlite
from calque.errors import ConfigInvalid
from calque.store.metabase.engine.statement import POSTGRES, SQLITE

BUSY_SECONDS = 10
POOL_SIZE = 16
SQLITE_POOL_SIZE = 64
"""A file may have many readers, and whoever waits for another's connection waits for its thread to
run as well: with 16 connections 20 threads read at a fifth of the pace of 16."""
WHAT = "a metabase on PostgreSQL"


class Engines(NamedTuple):
    """``sessions`` begin transactions by themselves; ``driven`` connections never do.

    On SQLite the two are one.
    """

    sessions: Engine
    driven: Engine
    most: int
    """Connections that are driven at a time."""


def open_engines(url: str) -> Engines:
    """The pools for ``sqlite:///path`` or ``postgresql://…``; nothing connects yet."""
    try:
        parsed = make_url(url)
        if parsed.drivername == "postgres":
            parsed = parsed.set(drivername="postgresql")
        if parsed.get_backend_name() not in (SQLITE, POSTGRES):
            raise ConfigInvalid(f"a metabase cannot live in {parsed.get_backend_name()!r}")
        if parsed.get_backend_name() == SQLITE:
            engine = _open_sqlite(Path(str(parsed.database or "")))
            return Engines(engine, engine, SQLITE_POOL_SIZE)
        return Engines(_open_sessions(parsed), _open_driven(parsed), POOL_SIZE)
    except (ArgumentError, NoSuchModuleError) as error:
        raise ConfigInvalid("the metabase URL cannot be read") from error


def sqlite_file(url: str) -> Path | None:
    """The file of a metabase on SQLite; None when it lives elsewhere."""
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ConfigInvalid("the metabase URL cannot be read") from error
    if parsed.get_backend_name() != SQLITE:
        return None
    if parsed.database in (None, "", ":memory:"):
        raise ConfigInvalid("a metabase on SQLite needs a file", hint="Use sqlite:///path/to.db")
    return Path(str(parsed.database))


def make_file(file: Path) -> None:
    """An empty database unless there is one, for its owner alone: it holds the secrets of API keys.

    SQLite gives its log the same mode.
    """
    try:
        # One that is there is never opened here: closing it again would drop the locks that SQLite
        # holds on it in this process, and another process would take the log away under us.
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        raise ConfigInvalid(
            f"the metabase {file} cannot be made or opened: {error.strerror}"
        ) from error


def _open_sessions(url: URL) -> Engine:
    engine = open_postgres(url, what=WHAT, pool_size=1, max_overflow=POOL_SIZE, pool_pre_ping=True)
    event.listen(engine, "connect", lambda connection, _record: _prepare(connection))
    return engine


def _open_driven(url: URL) -> Engine:
    # Whoever takes a connection leaves it idle or closed, so there is nothing to reset.
    engine = open_postgres(url, what=WHAT, pool_size=POOL_SIZE, pool_reset_on_return=None)

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        from psycopg import RawCursor
        from psycopg.types.array import ListBinaryDumper

        _prepare(connection)
        connection.autocommit = True
        connection.cursor_factory = RawCursor
        # As text an array of ids has each of them spelled in hex, quoted and parsed again.
        connection.adapters.register_dumper(list, ListBinaryDumper)

    return engine


def _prepare(connection: Any) -> None:
    """Whatever the server's defaults are, these are ours.

    Every statement is served by an index whatever its parameters, so each is planned once a
    connection, and never for the few rows that a new table happens to have. A statement that
    follows a lock must see what was committed before the lock was given.
    """
    connection.prepare_threshold = 0
    connection.execute("SET plan_cache_mode = force_generic_plan")
    connection.execute("SET enable_seqscan = off")
    connection.execute("SET default_transaction_isolation = 'read committed'")
    connection.commit()


def _open_sqlite(path: Path) -> Engine:
    """An engine that opens a file and never makes one; :func:`make_file` does."""
    return open_sqlite(
        path,
        create=False,
        busy_seconds=BUSY_SECONDS,
        pragmas=("temp_store=MEMORY", "cache_size=-16384", "mmap_size=268435456"),
        pool_size=SQLITE_POOL_SIZE,
        max_overflow=POOL_SIZE,
        pool_timeout=60,
        # The connection last used is the one whose cache the last commit has not made stale.
        pool_use_lifo=True,
    )
