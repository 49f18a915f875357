"""A snapshot of SQLite: one read transaction, or for tasks elsewhere a copy of the file.

In the mode of its log a reader sees what was committed when it began, and no writer waits for it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from calque.store.metabase.engine.pools import BUSY_SECONDS
from calque.store.metabase.engine.statement import SQLITE
from calque.store.metabase.scan.ranges import BATCH, Range, SnapshotSource, select_list

_ORDER = "ORDER BY stream_id, position"


class SqliteReader:
    """A read transaction on the file; also the keeper of the snapshot."""

    def __init__(self, file: Path) -> None:
        self.connection = sqlite3.connect(
            f"{file.absolute().as_uri()}?mode=rw",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            self.connection.execute("PRAGMA query_only=ON")
            # What a query must sort or group goes to a file: memory stays flat.
            self.connection.execute("PRAGMA temp_store=FILE")
            self.connection.execute("BEGIN")
            # A transaction sees nothing fixed before it has read something.
            self.connection.execute("SELECT 1 FROM segments LIMIT 1").fetchall()
        except BaseException:
            self.connection.close()
            raise
        self.source = SnapshotSource(SQLITE, str(file.absolute()), file.name)

    def read(self, range: Range, columns: Sequence[str]) -> Iterator[list[Any]]:
        where, values = _bounds(range)
        cursor = self.connection.execute(
            f"SELECT {select_list(columns)} FROM segments{where} {_ORDER}", values
        )
        while rows := cursor.fetchmany(BATCH):
            yield rows

    def rows(self, query: str) -> list[Any]:
        return self.connection.execute(query).fetchall()

    def cut(self, ranges: int | None, rows_each: int | None, rows: int) -> list[Range]:
        """Ranges of equal size by key, the last one open at its end."""
        each = max(-(-rows // ranges) if ranges else rows_each or 1, 1)
        cut: list[Range] = []
        low = None
        while True:
            where, values = _bounds(Range(0, low, None))
            found = self.connection.execute(
                f"SELECT stream_id, position FROM segments{where} {_ORDER} LIMIT 1 OFFSET ?",
                [*values, each - 1],
            ).fetchone()
            cut.append(Range(len(cut), low, found))
            if found is None:
                return cut
            low = found

    def close(self) -> None:
        self.connection.close()


def copy_file(connection: sqlite3.Connection, target: Path) -> None:
    """A copy that is a snapshot: it is read in one transaction, and writers go on."""
    connection.execute("VACUUM INTO ?", [str(target)])


def _bounds(range: Range) -> tuple[str, list[Any]]:
    """After the low key, up to the high one."""
    limits, values = [], []
    for sign, key in ((">", range.low), ("<=", range.high)):
        if key is not None:
            limits.append(f"(stream_id, position) {sign} (?, ?)")
            values.extend(key)
    return (f" WHERE {' AND '.join(limits)}" if limits else ""), values
