"""Room kept on the disk of an SQLite file, so that deletes work when the disk is full.

A delete writes too: rows go to SQLite's log first, and are written back into the file later. Where
the file cannot grow the log is not written back, so it grows instead, until nothing is left for
either. A file beside the database keeps as much free as writing the log back takes. A delete that
finds the disk full gives that room up, has the log written back, which empties it, and goes on.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

LOG_SIZE = 4 * 1024 * 1024
"""SQLite writes its log back at about so many bytes, so the file grows by no more at once."""
FOR_DELETES = 256 * 1024
"""What a batch of deletes adds to the log before it can be written back again."""
EVERY = 256
"""Writes after which the reserve is looked at again: a database grows slowly."""


FOR_OPENING = 64 * 1024
"""What the first connection takes: the index of the log is made anew."""


class Reserve:
    """The room beside one database file. Processes may share it; threads too."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._log = database.with_name(f"{database.name}-wal")
        self._file = database.with_name(f"{database.name}-reserve")
        self._writes = 0

    def keep_now_and_then(self) -> None:
        """Call it before each write; most calls cost nothing."""
        # Threads may count a write twice or not at all: it need not be exact.
        if self._writes % EVERY == 0:
            self.keep()
        self._writes += 1

    def keep(self) -> None:
        """Make the reserve, or let it grow with the database, if the disk has the room."""
        # Without it everything works until the disk is full: no error is worth a failed write.
        with contextlib.suppress(OSError):
            wanted = min(_size(self._database) + _size(self._log), LOG_SIZE) + FOR_DELETES
            if _size(self._file) < wanted <= shutil.disk_usage(self._database.parent).free:
                _allocate(self._file, wanted)

    def make_room_to_open(self) -> None:
        """On a full disk, give up a little: whoever cannot open the database cannot delete."""
        with contextlib.suppress(OSError):
            if shutil.disk_usage(self._database.parent).free < FOR_OPENING:
                os.truncate(self._file, max(_size(self._file) - FOR_DELETES, 0))

    def give_up(self) -> None:
        """Free the room."""
        with contextlib.suppress(OSError):
            self._file.unlink()


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def _allocate(file: Path, size: int) -> None:
    handle = os.open(file, os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        had = os.fstat(handle).st_size
        try:
            # Bytes that were never written take no room on the disk, so all of them are written.
            for start in range(had, size, FOR_DELETES):
                os.pwrite(handle, bytes(min(FOR_DELETES, size - start)), start)
        except OSError:
            os.ftruncate(handle, had)  # what does not fit would only take room from others
            raise
    finally:
        os.close(handle)
