"""Open a snapshot of a metabase, know what it holds, and read ranges of it.

Nothing is believed of a scan unless its snapshot lived to the end: :meth:`Snapshot.require` asks
the keeper, and the rows that were read are compared with :attr:`Snapshot.rows`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import make_url

from calque.errors import CalqueError, Unavailable
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.errors import Disturbed, meaning_of
from calque.store.metabase.engine.statement import POSTGRES
from calque.store.metabase.scan.postgres import PostgresKeeper, open_postgres_reader
from calque.store.metabase.scan.ranges import Range, Reader, SnapshotSource
from calque.store.metabase.scan.shared_copy import shared_copy
from calque.store.metabase.scan.sqlite import SqliteReader, copy_file

RANGE_ROWS = 50_000
"""Rows of a range, unless a number of ranges is asked for."""


class Snapshot:
    """One consistent state of the metabase. ``taken_at`` is not later than it."""

    def __init__(self, keeper: PostgresKeeper | SqliteReader, taken_at: int) -> None:
        self._keeper = keeper
        self.taken_at = taken_at
        self.source = keeper.source
        self.rows = int(self.query("SELECT count(*) FROM segments")[0][0])

    @property
    def own_source(self) -> SnapshotSource:
        """The source for processes of our own, with the password."""
        keeper = self._keeper
        return keeper.source if isinstance(keeper, SqliteReader) else keeper.own_source

    @property
    def name(self) -> str:
        """How the database calls it."""
        return self.source.name

    def query(self, sql: str) -> list[Any]:
        """Rows of the snapshot by a query without parameters."""
        with map_errors():
            return self._keeper.rows(sql)

    def cut(self, *, ranges: int | None = None, rows_each: int | None = None) -> list[Range]:
        """The ranges that together hold every segment once."""
        with map_errors():
            return self._keeper.cut(ranges, rows_each or RANGE_ROWS, self.rows)

    def require(self) -> None:
        """Unavailable when the keeper's transaction is over: then nobody knows what was read."""
        try:
            self.query("SELECT 1")
        except CalqueError as error:
            raise Unavailable(
                "the snapshot was lost while it was read: nothing was done with what was found",
                hint="Run it again; does the server end long transactions?",
            ) from error

    @contextmanager
    def reader(self) -> Iterator[Reader]:
        """For this process: on PostgreSQL another connection, on SQLite the keeper's own."""
        if isinstance(self._keeper, SqliteReader):
            yield self._keeper
            return
        with map_errors():
            reader = open_postgres_reader(self._keeper.own_source)
        try:
            yield reader
        finally:
            reader.close()


@contextmanager
def open_snapshot(database: Database, *, shared: bool = False) -> Iterator[Snapshot]:
    """A snapshot for the length of a ``with`` block; ``shared``: tasks elsewhere read it too."""
    # Before it is taken: what is older than this is in it for certain.
    taken_at = database.clock()
    with _keeper(database, shared) as keeper, map_errors():
        yield Snapshot(keeper, taken_at)


def open_reader(source: SnapshotSource) -> Reader:
    """In a task: a connection that sees the snapshot."""
    with map_errors():
        if source.dialect == POSTGRES:
            return open_postgres_reader(source)
        return SqliteReader(Path(source.place))


@contextmanager
def _keeper(database: Database, shared: bool) -> Iterator[PostgresKeeper | SqliteReader]:
    with map_errors():
        if database.dialect == POSTGRES:
            keeper: PostgresKeeper | SqliteReader = PostgresKeeper(make_url(database.engine.url))
        elif not shared:
            keeper = SqliteReader(Path(str(database.engine.url.database)))
        else:
            with _copy(database) as file:
                yield from _keep(SqliteReader(file))
            return
    yield from _keep(keeper)


def _keep(
    keeper: PostgresKeeper | SqliteReader,
) -> Iterator[PostgresKeeper | SqliteReader]:
    try:
        yield keeper
    finally:
        keeper.close()


def _copy(database: Database) -> AbstractContextManager[Path]:
    def copy_to(target: Path) -> None:
        pooled = database.engine.raw_connection()
        try:
            connection: Any = pooled.driver_connection
            copy_file(connection, target)
        finally:
            pooled.close()

    return shared_copy(Path(str(database.engine.url.database)), copy_to)


@contextmanager
def map_errors() -> Iterator[None]:
    """What the database says becomes one of our errors."""
    try:
        yield
    except Exception as error:
        found = meaning_of(error)
        if found is error:
            raise
        if isinstance(found, Disturbed):
            raise Unavailable(f"the metabase is busy ({found})") from error
        raise found from error
