"""Time, mode and owners of a file: told, and set on one that is there."""

from __future__ import annotations

import os
import stat as modes
from collections.abc import Iterator
from contextlib import contextmanager

from calque.operator.services.fs.errors import map_errors, map_lookup_errors
from calque.operator.services.fs.root import Root
from calque.values.file_attributes import FileAttributes


def read_attributes(root: Root, path: str) -> FileAttributes:
    """What the file system keeps of a file; a link is followed as long as it stays beneath."""
    key = root.key(path)
    with map_lookup_errors(root.absolute(key)), root.hold_open(key, os.O_PATH) as descriptor:
        found = os.fstat(descriptor)
    return FileAttributes(
        found.st_mtime_ns, modes.S_IMODE(found.st_mode), found.st_uid, found.st_gid
    )


def set_attributes(root: Root, path: str, wanted: FileAttributes) -> None:
    """Set what is known; owners first, since a change of owner clears some bits of the mode."""
    key = root.key(path)
    with map_errors(root.absolute(key)), _opened(root, key) as descriptor:
        if wanted.uid is not None or wanted.gid is not None:
            os.fchown(descriptor, _or_same(wanted.uid), _or_same(wanted.gid))
        if wanted.mode is not None:
            os.fchmod(descriptor, wanted.mode)
        if wanted.mtime is not None:
            os.utime(descriptor, ns=(wanted.mtime, wanted.mtime))


def _or_same(number: int | None) -> int:
    return -1 if number is None else number


@contextmanager
def _opened(root: Root, key: str) -> Iterator[int]:
    descriptor = root.open(key, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
