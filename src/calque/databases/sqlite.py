"""Engines for SQLite files: one journal mode, one way to begin, waits that are ours to say."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event

from calque.databases.errors import is_conflict
from calque.databases.transactions import WRITES
from calque.values import Backoff

DriverError = sqlite3.Error
"""What SQLite raises where rows are fetched past SQLAlchemy."""

_WAL_BACKOFF = Backoff(first=0.05, factor=1.0, jitter=0.9)


def open_sqlite(
    path: Path, *, create: bool, busy_seconds: float, pragmas: Sequence[str] = (), **pool: Any
) -> Engine:
    """An engine for the file; nothing is opened yet. ``pool`` goes to ``create_engine``.

    Without ``create`` a file that is missing stays so: where a database was lost, an empty one must
    not take its place.
    """
    place = f"{path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}"
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        creator=lambda: sqlite3.connect(
            place, uri=True, timeout=busy_seconds, check_same_thread=False
        ),
        **pool,
    )
    _share_compiled(engine)

    @event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # BEGIN is ours to say, never the driver's
        _switch_to_wal(connection, busy_seconds)
        # What was told to be committed must stay so after a power cut.
        connection.execute("PRAGMA synchronous=FULL")
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")

    event.listen(engine, "begin", _begin)
    return engine


def _share_compiled(engine: Engine) -> None:
    """Let the engine use what others compiled: a statement is the same for every file.

    Compiling takes a quarter of a small load, and each load of a process opens an engine anew.
    """
    model = _model()
    engine.dialect = model.dialect  # what is compiled is kept for one dialect
    engine.update_execution_options(compiled_cache=model._compiled_cache)


@cache
def _model() -> Engine:
    """An engine of which others have the dialect, which learns from a connection what it can."""
    engine = create_engine("sqlite://")
    with engine.connect():
        pass
    engine.dispose()
    return engine


def _begin(connection: Connection) -> None:
    # Writers queue here. A transaction that begins as a reader cannot wait when it turns to
    # writing: if another wrote meanwhile it fails, however long it would have waited.
    writes = connection.get_execution_options().get(WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _switch_to_wal(connection: sqlite3.Connection, busy_seconds: float) -> None:
    """Two processes that open a new file at once: SQLite does not wait here by itself."""
    until, waits = time.monotonic() + busy_seconds, _WAL_BACKOFF.waits()
    while True:
        try:
            # Asking first costs nothing; setting takes a lock, even if it changes nothing.
            if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if not is_conflict(error) or time.monotonic() > until:
                raise
            time.sleep(next(waits))
