"""What we copied ourselves, so that it is known again although no checksum is common to both sides.

Listings show neither user metadata nor what an object was copied from. So a file beside the ledger
keeps, for each pair of trees, a hash of every object that was copied: of its path, of its source as
it was listed, of its target as it was made; 24 bytes an object, none of them readable. It is a
cache: without it times decide.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Literal

from calque.config import state_folder
from calque.transfer.side import Side
from calque.values import Metadata

Verdict = Literal["same", "source changed", "unknown"]
_KEPT = 500
"""Copies that are written down together."""


class Remembered:
    """The copies of one pair of trees. Safe between threads."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._fresh: dict[bytes, tuple[bytes, bytes]] = {}
        self._broken = False
        database.execute(
            "CREATE TABLE IF NOT EXISTS copies"
            " (path BLOB PRIMARY KEY, source BLOB NOT NULL, target BLOB NOT NULL) WITHOUT ROWID"
        )
        self._is_empty = database.execute("SELECT 1 FROM copies LIMIT 1").fetchone() is None

    @classmethod
    def of(cls, source: Side, target: Side, folder: Path | None = None) -> Remembered | None:
        """The memory of a pair; None where no file can be kept."""
        base = (folder or state_folder()) / "trees"
        names = [side.service.identity(side.prefix).name for side in (source, target)]
        file = (
            base
            / f"{hashlib.sha256(chr(0).join(names).encode(errors='replace')).hexdigest()[:40]}.db"
        )
        try:
            base.mkdir(parents=True, exist_ok=True, mode=0o700)
            database = sqlite3.connect(file, timeout=5, check_same_thread=False)
            # Lost with the machine's power it costs a look at times, nothing more.
            database.execute("PRAGMA synchronous=OFF")
            return cls(database)
        except (OSError, sqlite3.Error):
            return None

    def verdict(self, path: str, source: Metadata, target: Metadata) -> Verdict:
        """What is known of a target that is there: made by us, of this source or of another."""
        if self._is_empty:
            return "unknown"
        with self._lock:
            try:
                found = self._database.execute(
                    "SELECT source, target FROM copies WHERE path = ?", (_hash(path),)
                ).fetchone()
            except sqlite3.Error:
                return "unknown"
        if found is None or found[1] != trait(target):
            return "unknown"
        return "same" if found[0] == trait(source) else "source changed"

    def keep(self, path: str, source: Metadata, made: Metadata) -> None:
        """Remember a copy that was made."""
        with self._lock:
            self._fresh[_hash(path)] = (trait(source), trait(made))
            if len(self._fresh) >= _KEPT:
                self._write()

    def _write(self) -> None:
        rows: Iterable[tuple[bytes, bytes, bytes]] = (
            (path, *traits) for path, traits in self._fresh.items()
        )
        try:
            with self._database:
                self._database.executemany("INSERT OR REPLACE INTO copies VALUES (?, ?, ?)", rows)
        except sqlite3.Error:
            self._broken = True  # a full disk, say: the copies themselves are as they should be
        self._fresh.clear()

    def close(self) -> None:
        with self._lock, closing(self._database):
            self._write()


def trait(entry: Metadata) -> bytes:
    """What tells the bytes of an object from others, as a listing and a write both show it."""
    if entry.etag is not None:
        return _hash(f"{entry.size} {entry.etag}")
    # Of a token only the time: inode and ctime change although the bytes do not.
    parts = (entry.token or "").split("-")
    when = parts[2] if len(parts) == 4 else entry.last_modified
    return _hash(f"{entry.size} {when}")


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode(errors="surrogateescape"), digest_size=8).digest()
