"""A snapshot of PostgreSQL: exported by a keeper, read by ranges of pages.

The keeper's transaction stays open for as long as the snapshot is needed. It locks the tables
against a rewrite (VACUUM FULL, CLUSTER), after which rows would lie on other pages. Ranges of
``ctid`` are read page after page, whatever the order of the keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import URL

from calque.errors import FailedPrecondition
from calque.store.metabase.engine.pools import open_engines
from calque.store.metabase.engine.statement import POSTGRES
from calque.store.metabase.scan.ranges import BATCH, Range, SnapshotSource, select_list

_TABLES = "segments, objects, segment_copies, segment_slices, freed_segments, nodes"


class PostgresReader:
    """A connection of its own, inside the snapshot."""

    def __init__(self, url: str, snapshot: str | None) -> None:
        # Not from the pool of the metabase: a scan of hours must not take a caller's connection.
        self._engine = open_engines(url).sessions
        pooled = self._engine.raw_connection()
        self.connection: Any = pooled.driver_connection
        pooled.detach()
        try:
            self._begin(snapshot)
        except BaseException:
            self.close()
            raise

    def _begin(self, snapshot: str | None) -> None:
        from psycopg import IsolationLevel

        self.connection.isolation_level = IsolationLevel.REPEATABLE_READ
        self.connection.read_only = True
        if snapshot is not None:
            self._require_name(snapshot)
            self.connection.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
        # No timeouts: the connection that keeps the snapshot is idle while others read.
        # Sequential scans stay off as the pool has them: of a table without statistics PostgreSQL
        # would read the whole for a range of it.
        for setting in (
            "enable_seqscan = off",
            "plan_cache_mode = auto",
            "idle_in_transaction_session_timeout = 0",
            "statement_timeout = 0",
        ):
            self.connection.execute(f"SET LOCAL {setting}")

    @staticmethod
    def _require_name(snapshot: str) -> None:
        if not snapshot.replace("-", "").isalnum():
            raise FailedPrecondition(f"{snapshot!r} is no name of a snapshot")

    def read(self, range: Range, columns: Sequence[str]) -> Iterator[list[Any]]:
        """By a server cursor in the binary format: COPY would hand out row by row."""
        last = "" if range.high is None else f" AND ctid < {_tid(range.high)}"
        query = f"SELECT {select_list(columns)} FROM segments WHERE ctid >= {_tid(range.low)}{last}"
        with self.connection.cursor(name=f"scan_{range.number}") as cursor:
            cursor.execute(query, binary=True)
            while rows := cursor.fetchmany(BATCH):
                yield rows

    def close(self) -> None:
        self.connection.close()
        self._engine.dispose()


class PostgresKeeper(PostgresReader):
    """The transaction that the snapshot lives by."""

    def __init__(self, url: URL) -> None:
        super().__init__(url.render_as_string(hide_password=False), None)
        try:
            # Locked before the snapshot is taken: a rewrite in between would be missed.
            self.connection.execute(f"LOCK TABLE {_TABLES} IN ACCESS SHARE MODE")
            # It counts and sums whole tables; the pool's settings are for single rows.
            self.connection.execute("SET LOCAL enable_seqscan = on")
            name = self.rows("SELECT pg_export_snapshot()")[0][0]
        except BaseException:
            self.close()
            raise
        self.source = _name_source(url.set(password=None), name)
        self.own_source = _name_source(url, name)
        """With the password: for connections of this process."""

    def rows(self, query: str) -> list[Any]:
        found: list[Any] = self.connection.execute(query).fetchall()
        return found

    def cut(self, ranges: int | None, rows_each: int | None, rows: int) -> list[Range]:
        """Ranges of about equal size; the last one is open at its end."""
        pages = int(
            self.rows(
                "SELECT pg_relation_size('segments') / current_setting('block_size')::bigint"
            )[0][0]
        )
        wanted = max(ranges or -(-rows // (rows_each or 1)), 1)
        starts = _cut_pages(max(pages, 1), wanted, rows)
        return [
            Range(number, start, starts[number + 1] if number + 1 < len(starts) else None)
            for number, start in enumerate(starts)
        ]


def _cut_pages(pages: int, wanted: int, rows: int) -> list[tuple[int, int]]:
    """Where ranges begin, as pages and rows in them: of a small table a page may be several."""
    if wanted <= pages:
        return [(page, 0) for page in range(0, pages, -(-pages // wanted))]
    step = max(rows // wanted, 1)
    in_page = max(-(-rows // pages) * 2, 1)
    return [(page, row) for page in range(pages) for row in range(0, in_page, step)]


def _tid(place: tuple[int, int]) -> str:
    page, row = place
    return f"'({int(page)},{int(row)})'"


def _name_source(url: URL, name: str) -> SnapshotSource:
    return SnapshotSource(POSTGRES, url.render_as_string(hide_password=False), name)


def open_postgres_reader(source: SnapshotSource) -> PostgresReader:
    """The same snapshot through a connection of its own."""
    return PostgresReader(source.place, source.name)
