"""The peer of a small copy: its bare rows, committed with the database's driver alone.

One connection a caller, prepared statements, an object, a segment and a reference, one
durable commit each. Nothing of the metabase is in between: no pool, no checks, no quota and
no operation row.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from typing import Any

import psycopg

from calque.store.metabase.copies.store_copy import INSERT_COPY
from calque.store.metabase.engine.statement import SQLITE
from calque.store.metabase.model.records import (
    ObjectRecord,
    SegmentRecord,
    new_stream_id,
    now_us,
)
from calque.store.metabase.objects.begin_object import INSERT_OBJECT
from calque.store.metabase.objects.commit_segment import INSERT_SEGMENT

# SQLite takes one writer at a time: waiting here is faster than in its busy handler.
_ONE_WRITER = threading.Lock()


class BareCommits:
    """Commits the rows of copies of ``record``, which has the one segment ``segment``."""

    def __init__(self, url: str, record: ObjectRecord, segment: SegmentRecord) -> None:
        self._record = record
        self._segment = segment
        self._commit: Callable[..., None]
        if url.startswith("sqlite:///"):
            self._connection: Any = _sqlite(url.removeprefix("sqlite:///"))
            self._commit = self._on_sqlite
        else:
            self._connection = _postgres(url.replace("postgresql+psycopg:", "postgresql:"))
            self._commit = self._on_postgres

    def commit(self, key: str) -> None:
        """One object at ``key``, with its segment and its reference."""
        stream_id = new_stream_id(now_us())
        self._commit(
            self._record._replace(object_key=key.encode(), stream_id=stream_id)._asdict(),
            self._segment._replace(stream_id=stream_id, remote_alias_pieces=None)._asdict(),
            {"stream_id": stream_id, "ancestor_stream_id": self._record.stream_id},
        )

    def close(self) -> None:
        self._connection.close()

    def _on_sqlite(self, *rows: dict[str, Any]) -> None:
        with _ONE_WRITER:
            self._connection.execute("BEGIN IMMEDIATE")
            for statement, row in zip(_INSERTS, rows, strict=True):
                self._connection.execute(statement.sql(SQLITE), row)
            self._connection.execute("COMMIT")

    def _on_postgres(self, *rows: dict[str, Any]) -> None:
        self._connection.execute("BEGIN")
        for statement, row in zip(_INSERTS, rows, strict=True):
            self._connection.execute(*statement.for_postgres(row))
        self._connection.execute("COMMIT")


_INSERTS = (INSERT_OBJECT, INSERT_SEGMENT, INSERT_COPY)


def _sqlite(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    for pragma in (
        "busy_timeout=10000",
        "journal_mode=WAL",
        "synchronous=FULL",
        "temp_store=MEMORY",
        "cache_size=-16384",
        "mmap_size=268435456",
    ):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def _postgres(url: str) -> Any:
    connection = psycopg.connect(url, autocommit=True, cursor_factory=psycopg.RawCursor)
    connection.prepare_threshold = 0
    connection.execute("SET plan_cache_mode = force_generic_plan")
    return connection
