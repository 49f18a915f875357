"""A file of hashes: which object was copied from what, by a pair of trees.

It is a cache beside the ledger, not a part of it: 24 bytes an object, no name to be read in it, and
lost it costs a look at times and nothing more. So it is not synced, and an error of it is no error
of whoever asks.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

Traits = tuple[bytes, bytes]
"""Of a source and of the target that was made of it."""


class CopiedObjects:
    """Hashes of paths, each with the traits of a copy. Safe between threads."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._lock = threading.Lock()
        database.execute("PRAGMA synchronous=OFF")
        database.execute(
            "CREATE TABLE IF NOT EXISTS copies"
            " (path BLOB PRIMARY KEY, source BLOB NOT NULL, target BLOB NOT NULL) WITHOUT ROWID"
        )
        self._is_empty = database.execute("SELECT 1 FROM copies LIMIT 1").fetchone() is None

    @classmethod
    def open(cls, file: Path) -> CopiedObjects | None:
        """The file, made if it is not there; None where that cannot be."""
        try:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            return cls(sqlite3.connect(file, timeout=5, check_same_thread=False))
        except (OSError, sqlite3.Error):
            return None

    def find(self, path: bytes) -> Traits | None:
        """What was kept of a path."""
        if self._is_empty:
            return None
        query = "SELECT source, target FROM copies WHERE path = ?"
        with self._lock:
            try:
                found: Traits | None = self._database.execute(query, (path,)).fetchone()
            except sqlite3.Error:
                return None
        return found

    def keep(self, copies: Iterable[tuple[bytes, bytes, bytes]]) -> None:
        """Keep copies: path, trait of the source, trait of the target."""
        with self._lock:
            try:
                with self._database:
                    self._database.executemany(
                        "INSERT OR REPLACE INTO copies VALUES (?, ?, ?)", copies
                    )
            except sqlite3.Error:
                return  # a full disk, say: the copies themselves are as they should be

    def close(self) -> None:
        with self._lock, closing(self._database):
            pass
