"""What we copied ourselves, so that it is known again although no checksum is common to both sides.

Listings show neither user metadata nor what an object was copied from. So a file beside the ledger
keeps, for each pair of trees, a hash of every object that was copied: of its path, of its source as
it was listed, of its target as it was made. Without the file times decide.
"""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from typing import Literal

from calque.config import state_folder
from calque.ledger.copied_objects import CopiedObjects
from calque.transfer.plan.side import Side
from calque.values import Metadata

Verdict = Literal["same", "source changed", "target changed", "unknown"]
_TOGETHER = 500
"""Copies that are written down at a time."""


class Remembered:
    """The copies of one pair of trees. Safe between threads."""

    def __init__(self, copied: CopiedObjects) -> None:
        self._copied = copied
        self._lock = threading.Lock()
        self._fresh: list[tuple[bytes, bytes, bytes]] = []

    @classmethod
    def of(cls, source: Side, target: Side, folder: Path | None = None) -> Remembered | None:
        """The memory of a pair; None where no file can be kept."""
        names = [side.service.identity(side.prefix).name for side in (source, target)]
        digest = hashlib.sha256("\n".join(names).encode(errors="surrogateescape")).hexdigest()
        file = (folder or state_folder()) / "trees" / f"{digest[:40]}.db"
        copied = CopiedObjects.open(file)
        return None if copied is None else cls(copied)

    def verdict(self, path: str, source: Metadata, target: Metadata) -> Verdict:
        """What is known of a target that is there: made by us of this source, or of another one;
        or of this source, and rewritten since by somebody else."""
        found = self._copied.find(_hash(path))
        if found is None:
            return "unknown"
        same = found[0] == trait(source), found[1] == trait(target)
        if not any(same):
            return "unknown"  # others have been at both: nothing is known of these two
        if all(same):
            return "same"
        return "source changed" if same[1] else "target changed"

    def keep(self, path: str, source: Metadata, made: Metadata) -> None:
        """Remember a copy that was made."""
        with self._lock:
            self._fresh.append((_hash(path), trait(source), trait(made)))
            fresh = self._take() if len(self._fresh) >= _TOGETHER else []
        self._copied.keep(fresh)

    def _take(self) -> list[tuple[bytes, bytes, bytes]]:
        fresh, self._fresh = self._fresh, []
        return fresh

    def close(self) -> None:
        with self._lock:
            self._copied.keep(self._take())
        self._copied.close()


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
