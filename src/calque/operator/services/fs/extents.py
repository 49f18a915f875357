"""How bytes move from one open file to another: by the shortest way the kernel has."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

from calque.operator.services.fs import syscalls

_CANNOT = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EBADF)
"""What says "not this way, here": another file system, an older kernel, a sandbox."""

_PIECE = 1024 * 1024

Way = Callable[[int, int, int, int], int]
"""``(source, target, offset, length)`` → bytes moved to the same offset; 0 at the source's end."""


def clone(source: int, target: int) -> bool:
    """Share all blocks of ``source`` with the empty ``target``; False where it cannot be done."""
    try:
        syscalls.clone(source, target)
    except OSError as error:
        if error.errno not in (*_CANNOT, errno.ENOTTY, errno.EISDIR, errno.ETXTBSY):
            raise
        return False
    return True


def data_after(source: int, offset: int, size: int) -> tuple[int, int]:
    """The next stretch of data at or after ``offset`` as (begin, end); holes lie around it.

    ``(size, size)`` when only a hole is left. Where holes cannot be told, all is data.
    """
    try:
        begin = os.lseek(source, offset, os.SEEK_DATA)
        return begin, min(os.lseek(source, begin, os.SEEK_HOLE), size)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return size, size
        if error.errno in _CANNOT:
            return offset, size
        raise


class Mover:
    """Moves stretches of bytes, and remembers the ways that turned out to be closed."""

    def __init__(self, source: int, target: int) -> None:
        self._source = source
        self._target = target
        self._ways: list[Way] = [_by_kernel, _by_sendfile, _by_hand]

    def move(self, offset: int, length: int) -> int:
        """Move a stretch to the same offset of the target; fewer bytes when the source ends."""
        moved = 0
        while moved < length:
            count = self._some(offset + moved, length - moved)
            if count == 0:
                break
            moved += count
        return moved

    def _some(self, offset: int, length: int) -> int:
        while len(self._ways) > 1:
            try:
                return self._ways[0](self._source, self._target, offset, length)
            except OSError as error:
                if error.errno not in _CANNOT:
                    raise
                # For good: the files stay the same, so the next chunk would be refused again.
                self._ways.pop(0)
        return self._ways[0](self._source, self._target, offset, length)


def _by_kernel(source: int, target: int, offset: int, length: int) -> int:
    return os.copy_file_range(source, target, length, offset, offset)


def _by_sendfile(source: int, target: int, offset: int, length: int) -> int:
    # sendfile writes where the target stands; only the source has an offset of its own.
    os.lseek(target, offset, os.SEEK_SET)
    return os.sendfile(target, source, offset, length)


def _by_hand(source: int, target: int, offset: int, length: int) -> int:
    piece = os.pread(source, min(length, _PIECE), offset)
    view = memoryview(piece)
    while view:
        done = os.pwrite(target, view, offset + len(piece) - len(view))
        view = view[done:]
    return len(piece)
