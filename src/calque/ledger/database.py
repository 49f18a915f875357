"""Where the ledger lives: SQLite beside the data by default, PostgreSQL by a URL."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, exc
from sqlalchemy.engine import make_url
from sqlalchemy.pool import NullPool

from calque.errors import (
    AlreadyExists,
    CalqueError,
    ConfigInvalid,
    MissingExtra,
    PermissionDenied,
    ResourceExhausted,
    Unavailable,
    Unexpected,
)
from calque.ledger.identity import DAY
from calque.ledger.schema import is_current, migrate
from calque.values import Backoff

DEFAULT_LIFE = 64 * DAY
"""How long a record lives, in microseconds: the seed's 64 days."""

BUSY_SECONDS = 30
_WAL_BACKOFF = Backoff(first=0.01, most=0.1)


class Ledger:
    """An open ledger: transactions, and its clock. Safe to use from several threads."""

    def __init__(
        self,
        engine: Engine,
        *,
        tenant: str = "default",
        life: int = DEFAULT_LIFE,
        clock: Callable[[], int] | None = None,
    ) -> None:
        self.engine = engine
        self.tenant = tenant
        self.life = life
        self._clock = clock

    @property
    def where(self) -> str:
        """Where the ledger lives, without its password."""
        return self.engine.url.render_as_string(hide_password=True)

    def now(self) -> int:
        """Microseconds since the epoch, by this machine: what files' time stamps compare with."""
        return self._clock() if self._clock else time.time_ns() // 1000

    def lease_now(self, connection: Connection) -> int:
        """The time of leases and expiry: the same for every machine that shares the ledger.

        Asked each time, of the caller's own connection: a clock that was wrong, and is set while a
        loader runs for days, must not let it take others for dead, nor seem dead to them.
        """
        if self._clock or self.engine.dialect.name != "postgresql":
            return self.now()
        told = connection.exec_driver_sql(
            "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
        )
        return int(told.scalar_one())

    def shared_now(self) -> int:
        """The same for one who holds no connection."""
        with self.read() as connection:
            return self.lease_now(connection)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that only reads: one consistent picture."""
        with _mapped(self.where), self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that writes: all of it or nothing."""
        with _mapped(self.where), self.engine.connect() as connection:
            connection = connection.execution_options(calque_write=True)
            with connection.begin():
                yield connection

    def close(self) -> None:
        self.engine.dispose()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def open_ledger(
    where: str | Path,
    *,
    tenant: str = "default",
    life: int = DEFAULT_LIFE,
    clock: Callable[[], int] | None = None,
) -> Ledger:
    """Open (or make) the ledger at a path or a ``sqlite:``/``postgresql:`` URL; migrates it."""
    text = str(where)
    engine = _postgres(text) if text.startswith("postgres") else _sqlite(text)
    ledger = Ledger(engine, tenant=tenant, life=life, clock=clock)
    with ledger.read() as connection:
        current = is_current(connection)
    if not current:
        with ledger.write() as connection:
            migrate(connection)
    return ledger


def _sqlite(text: str) -> Engine:
    if "://" in text and not text.startswith("sqlite:"):
        raise ConfigInvalid(
            f"a ledger cannot live at {text.partition('://')[0]}://…",
            hint="Give a file path, sqlite:///PATH or postgresql://HOST/DATABASE.",
        )
    path = Path(text.removeprefix("sqlite:///")).expanduser()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PermissionDenied(f"the ledger's directory cannot be made: {error}") from error
    engine = create_engine(
        f"sqlite:///{path}", poolclass=NullPool, connect_args={"timeout": BUSY_SECONDS}
    )
    event.listen(engine, "connect", _tune_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _tune_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000}")
    _use_wal(cursor)
    # A load that was told to be committed must stay so after a power cut.
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _use_wal(cursor: Any) -> None:
    """Turn the journal to WAL once; SQLite does not wait for others when it does that."""
    until, waits = time.monotonic() + BUSY_SECONDS, _WAL_BACKOFF.waits()
    while cursor.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(next(waits))


def _begin_sqlite(connection: Connection) -> None:
    # Writers queue at BEGIN; a deferred transaction could fail half-way when it turns to writing.
    writes = connection.get_execution_options().get("calque_write")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _postgres(text: str) -> Engine:
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise MissingExtra.of("postgres", "a ledger in PostgreSQL") from error
    url = make_url(text).set(drivername="postgresql+psycopg")
    engine = create_engine(url, pool_pre_ping=True, pool_size=5)
    event.listen(engine, "begin", _begin_postgres)
    return engine


def _begin_postgres(connection: Connection) -> None:
    # A loader that froze inside a transaction loses it, and with it the locks others wait for.
    # Reads hold no lock that a writer waits for, so they are left alone.
    if connection.get_execution_options().get("calque_write"):
        connection.exec_driver_sql(
            f"SET LOCAL idle_in_transaction_session_timeout = '{BUSY_SECONDS}s'; "
            f"SET LOCAL lock_timeout = '{2 * BUSY_SECONDS}s'"
        )


ERRORS: tuple[tuple[type[Exception], type[CalqueError]], ...] = (
    (exc.IntegrityError, AlreadyExists),
    (exc.OperationalError, Unavailable),
    (exc.InterfaceError, Unavailable),
    (exc.TimeoutError, Unavailable),
    (exc.DBAPIError, Unexpected),
    (exc.SQLAlchemyError, Unexpected),
)
"""The one table of database errors; the first line that fits counts."""


@contextmanager
def _mapped(where: str) -> Iterator[None]:
    try:
        yield
    except exc.SQLAlchemyError as error:
        raise map_error(error, where) from error


def map_error(error: Exception, where: str) -> CalqueError:
    """Our error for a database's, naming the ledger and not the statement's values."""
    cause = getattr(error, "orig", None) or error
    reason = str(cause).strip().splitlines()[0] if str(cause).strip() else type(cause).__name__
    message = f"the ledger at {where} did not answer: {reason}"
    if "disk is full" in reason or "No space left" in reason:
        return ResourceExhausted(message)
    if "readonly database" in reason or "permission denied" in reason:
        return PermissionDenied(message)
    if "unable to open" in reason or "not a database" in reason:
        return ConfigInvalid(message, hint="Check the path or URL of the ledger.")
    if getattr(error, "connection_invalidated", False):
        return Unavailable(message)
    for kind, ours in ERRORS:
        if isinstance(error, kind):
            return ours(message)
    return Unexpected(message)
