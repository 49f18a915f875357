"""A copy of a SQLite file that other processes read: a snapshot for the length of a scan.

It lies beside the file itself: there is room for it, and it is on the same disk. Its folder is
locked for as long as the scan lives, and the kernel lets go of what a killed one held: the next
scan removes every copy that nobody holds.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_PREFIX = ".scan-"


@contextmanager
def shared_copy(file: Path, copy_to: Callable[[Path], None]) -> Iterator[Path]:
    """A copy of ``file`` for the length of a ``with`` block, made by ``copy_to``."""
    folder, held = _make_folder(file.parent)
    try:
        copy_to(folder / file.name)
        yield folder / file.name
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def _make_folder(beside: Path) -> tuple[Path, int]:
    """A new folder, and the open file that holds its lock; what others left unlocked goes."""
    # One process at a time: a folder that is made and not yet locked looks like one left behind.
    around = os.open(beside, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(around, fcntl.LOCK_EX)
        for each in beside.glob(f"{_PREFIX}*"):
            held = _lock(each)
            if held is not None:
                shutil.rmtree(each, ignore_errors=True)
                os.close(held)
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=beside))
        held = _lock(folder)
        assert held is not None, "nobody else looks for copies now"
        return folder, held
    finally:
        os.close(around)


def _lock(folder: Path) -> int | None:
    """The open file that holds the lock; None where another holds it, or no folder is there."""
    try:
        found = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(found)
        return None
    return found
