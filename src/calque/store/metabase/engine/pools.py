"""Pools of connections: one for SQLAlchemy's own sessions, one as the metabase drives them."""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, create_engine, event
from sqlalchemy.engine import URL, Engine, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from calque.errors import ConfigInvalid, MissingExtra
from calque.store.metabase.engine.errors import disturbed
from calque.store.metabase.engine.statement import POSTGRES, SQLITE
from calque.values import Backoff

# A connection that breaks is retried or raised by us. Without a handler of their own the drivers
# would also write it, with a traceback, to the terminal of whoever has not set up logging.
for _name in ("sqlalchemy", "psycopg"):
    logging.getLogger(_name).addHandler(logging.NullHandler())

BUSY_TIMEOUT_MS = 10_000
BUSY_TRIES = 12
_BUSY_BACKOFF = Backoff(first=0.05, factor=1.0, jitter=0.9)
POOL_SIZE = 16
POSTGRES_LIVENESS = {
    "connect_timeout": "30",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
"""A server that loses its power or its network says no farewell; by default libpq would wait two
hours for its answer, and all callers with it. What a URL says goes first."""
BEGIN_MODE = "sqlite_begin_mode"
"""Execution option of a session's connection: how its transactions begin on SQLite."""


class Engines(NamedTuple):
    """``sessions`` begin transactions by themselves; ``driven`` connections never do.

    On SQLite the two are one.
    """

    sessions: Engine
    driven: Engine


def open_engines(url: str) -> Engines:
    """The pools for ``sqlite:///path`` or ``postgresql://…``; nothing connects yet."""
    try:
        parsed = make_url(url)
        if parsed.drivername in ("postgresql", "postgres"):
            parsed = parsed.set(drivername="postgresql+psycopg")
        if parsed.get_backend_name() not in (SQLITE, POSTGRES):
            raise ConfigInvalid(f"a metabase cannot live in {parsed.get_backend_name()!r}")
        if parsed.get_backend_name() == SQLITE:
            engine = _sqlite(str(parsed.database or ""))
            return Engines(engine, engine)
        parsed = parsed.set(query={**POSTGRES_LIVENESS, **parsed.query})
        return Engines(_postgres_sessions(parsed), _postgres_driven(parsed))
    except (ArgumentError, NoSuchModuleError) as error:
        raise ConfigInvalid("the metabase URL cannot be read") from error
    except ImportError as error:
        raise MissingExtra.of("postgres", "a metabase on PostgreSQL") from error


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
        os.close(os.open(file, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise ConfigInvalid(
            f"the metabase {file} cannot be made or opened: {error.strerror}"
        ) from error


def _postgres_sessions(url: URL) -> Engine:
    engine = create_engine(url, pool_size=1, max_overflow=POOL_SIZE, pool_pre_ping=True)
    event.listen(engine, "connect", lambda connection, _record: _prepare(connection))
    return engine


def _postgres_driven(url: URL) -> Engine:
    # Whoever takes a connection leaves it idle or closed, so there is nothing to reset.
    engine = create_engine(url, pool_size=POOL_SIZE, pool_reset_on_return=None)

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        from psycopg import RawCursor

        _prepare(connection)
        connection.autocommit = True
        connection.cursor_factory = RawCursor

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


def _sqlite(path: str) -> Engine:
    """An engine that opens a file and never makes one: where a database was lost, an empty one
    must not take its place. :func:`make_file` makes it."""
    place = f"{Path(path).absolute().as_uri()}?mode=rw"
    # The connection last used is the one whose cache the last commit has not made stale.
    engine = create_engine(
        f"sqlite:///{path}",
        creator=lambda: sqlite3.connect(place, uri=True, check_same_thread=False),
        pool_size=POOL_SIZE,
        max_overflow=POOL_SIZE,
        pool_timeout=60,
        pool_use_lifo=True,
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # BEGIN is ours to say, never the driver's
        connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        _switch_to_wal(connection)
        for pragma in (
            "synchronous=FULL",
            "temp_store=MEMORY",
            "cache_size=-16384",
            "mmap_size=268435456",
        ):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # The driver begins nothing, so sessions need this.
        mode = connection.get_execution_options().get(BEGIN_MODE, "DEFERRED")
        connection.exec_driver_sql(f"BEGIN {mode}")

    return engine


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Two processes that open a new file at once: SQLite does not wait here by itself."""
    for wait in _BUSY_BACKOFF.waits(BUSY_TRIES):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if disturbed(error) is None:
                raise
            time.sleep(wait)
    connection.execute("PRAGMA journal_mode=WAL")
