"""Where the ledger lives: SQLite beside the data by default, PostgreSQL by a URL."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, Select, exc, make_url
from sqlalchemy.pool import NullPool

from calque.databases.errors import DISK_FULL, WRONG_FILE, is_one_of, kind_of
from calque.databases.postgres import end_frozen_writers, open_postgres
from calque.databases.sqlite import DriverError, open_sqlite
from calque.databases.transactions import WRITES
from calque.errors import CalqueError, ConfigInvalid, PermissionDenied, Unexpected
from calque.ledger.identity import DAY
from calque.ledger.migrate import STEPS

DEFAULT_LIFE = 64 * DAY
"""How long a record lives unless settings say otherwise, in microseconds. Snowflake's
COPY INTO forgets loaded files after 64 days too, so who comes from there finds what they know."""

BUSY_SECONDS = 30
"""How long a writer waits for another on SQLite, and may sleep in a transaction on PostgreSQL."""
FULL = "The disk of the ledger is full: make room there, and try again. Nothing was changed."


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
        with _map_errors(self.where), self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that writes: all of it or nothing."""
        with _map_errors(self.where), self.engine.connect() as connection:
            connection = connection.execution_options(**{WRITES: True})
            with connection.begin():
                yield connection

    def close(self) -> None:
        self.engine.dispose()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def fetch_plain_rows(connection: Connection, query: Select[Any]) -> Sequence[tuple[Any, ...]]:
    """All rows as the driver gives them, for who reads very many: of numbers and text alone.

    A row of SQLAlchemy takes as long to make as SQLite takes to read it.
    """
    result = connection.execute(query)
    assert result.cursor is not None, "a SELECT has rows"
    rows = result.cursor.fetchall()
    result.close()
    return rows


def open_ledger(
    where: str | Path,
    *,
    tenant: str = "default",
    life: int = DEFAULT_LIFE,
    clock: Callable[[], int] | None = None,
) -> Ledger:
    """Open (or make) the ledger at a path or a ``sqlite:``/``postgresql:`` URL; migrates it."""
    text = str(where)
    engine = _open_server(text) if text.startswith("postgres") else _open_file(text)
    ledger = Ledger(engine, tenant=tenant, life=life, clock=clock)
    with _map_errors(ledger.where, opening=True):
        STEPS.apply(engine)
    return ledger


def _open_file(text: str) -> Engine:
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
    # No pool: no connection may live on in a forked worker, and the last one that closes folds
    # the write-ahead log into the file, which can then be copied as it is.
    return open_sqlite(
        path,
        create=True,
        busy_seconds=BUSY_SECONDS,
        pragmas=("foreign_keys=ON",),
        poolclass=NullPool,
    )


def _open_server(text: str) -> Engine:
    try:
        url = make_url(text)
    except (exc.ArgumentError, ValueError):
        # The error shows the URL whole, and with it the password.
        raise ConfigInvalid(
            "the URL of the ledger cannot be read", hint="Spell it postgresql://HOST/DATABASE."
        ) from None
    engine = open_postgres(url, what="a ledger in PostgreSQL", pool_pre_ping=True, pool_size=5)
    end_frozen_writers(engine, idle_seconds=BUSY_SECONDS, lock_seconds=2 * BUSY_SECONDS)
    return engine


@contextmanager
def _map_errors(where: str, *, opening: bool = False) -> Iterator[None]:
    try:
        yield
    except (exc.SQLAlchemyError, DriverError) as error:  # the driver's: fetch_plain_rows
        raise ledger_error(error, where, opening=opening) from error


def ledger_error(error: Exception, where: str, *, opening: bool = False) -> CalqueError:
    """Our error for a database's, naming the ledger and not the statement's values."""
    cause = getattr(error, "orig", None) or error
    reason = str(cause).strip().splitlines()[0] if str(cause).strip() else type(cause).__name__
    message = f"the ledger at {where} did not answer: {reason}"
    if opening and is_one_of(error, WRONG_FILE):
        return ConfigInvalid(message, hint="Check the path or URL of the ledger.")
    kind = kind_of(error) or Unexpected
    return kind(message, hint=FULL if is_one_of(error, DISK_FULL) else None)
