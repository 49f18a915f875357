"""Files written aside, many of which are made durable by one sync.

A file that takes its name before its bytes are on the disk may be found empty after a power cut,
and the old one would be gone. So the order of a batch is: all bytes, one sync, all names, one sync.
Only then is any of them told to be there.
"""

from __future__ import annotations

import os
import stat as modes
from collections.abc import Callable

from calque.operator.options import WriteOptions
from calque.operator.services.fs import syscalls
from calque.operator.services.fs.errors import map_errors
from calque.operator.services.fs.marker import refuse_reserved
from calque.operator.services.fs.root import Root
from calque.operator.services.fs.stat import describe
from calque.operator.services.fs.temporary import Temporary
from calque.operator.services.fs.write import check_conditions, target_status
from calque.values import Metadata

_FULL_MODE = 0o666
_HOLE = 64 * 1024
"""Zeros of this length, at such an offset, are not written where holes are kept."""


class AsideFile:
    """A file that has all its bytes and not yet its name. Ended by ``publish`` or ``discard``."""

    def __init__(self, root: Root, key: str, temporary: Temporary, *, replace: bool) -> None:
        self._shown = root.absolute(key)
        self._key = key
        self._temporary = temporary
        self._replace = replace

    @property
    def device(self) -> int:
        """The file system it lies on."""
        with map_errors(self._shown):
            return os.fstat(self._temporary.descriptor).st_dev

    def sync(self) -> None:
        """Bring all of its file system to the disk: this file, and every other one there."""
        with map_errors(self._shown):
            syscalls.sync_file_system(self._temporary.descriptor)

    def hold(self) -> Callable[[], None]:
        """The same sync for later, when the file itself is closed; it must be called once."""
        with map_errors(self._shown):
            descriptor = os.dup(self._temporary.descriptor)

        def sync() -> None:
            try:
                with map_errors(self._shown):
                    syscalls.sync_file_system(descriptor)
            finally:
                os.close(descriptor)

        return sync

    def publish(self) -> Metadata:
        """Give it its name, in one moment; durable only after the next sync.

        Raises ConditionNotMatch where the name is taken and must not be; nothing is left then.
        """
        try:
            with map_errors(self._shown):
                found = self._temporary.publish(self._key, replace=self._replace)
        except BaseException:
            self.discard()
            raise
        return describe(self._key, found)

    def discard(self) -> None:
        """Remove it. One that was published is left alone."""
        self._temporary.discard()


def write_aside(
    root: Root,
    path: str,
    data: bytes,
    options: WriteOptions,
    *,
    modified: int | None = None,
    mode: int | None = None,
    sparse: bool = False,
) -> AsideFile:
    """Write a file beside its name; after a failure nothing is left.

    ``modified`` (nanoseconds) and ``mode`` are set before it can be seen. A file that is replaced
    keeps its mode unless one is given. ``sparse`` leaves holes where the bytes are zeros.
    """
    key = root.key(path)
    refuse_reserved(key)
    check_conditions(path, options.if_match)
    with map_errors(root.absolute(key)):
        old = target_status(root, key)
        temporary = Temporary.create(
            root, key, replace=not options.if_not_exists, mode=_FULL_MODE, durable=False
        )
        try:
            _fill(temporary.descriptor, data, sparse)
            if mode is not None:
                os.fchmod(temporary.descriptor, mode)
            elif old is not None:
                # Before it takes the name: not for a moment may it be read by wider rights.
                os.fchmod(temporary.descriptor, modes.S_IMODE(old.st_mode))
            if modified is not None:
                os.utime(temporary.descriptor, ns=(modified, modified))
        except BaseException:
            temporary.discard()
            raise
    return AsideFile(root, key, temporary, replace=not options.if_not_exists)


def check_place(root: Root, path: str) -> None:
    """Raise what a file of that name could not be written for, as things are now."""
    key = root.key(path)
    refuse_reserved(key)
    with map_errors(root.absolute(key)):
        target_status(root, key)


def _fill(descriptor: int, data: bytes, sparse: bool) -> None:
    if not sparse or len(data) < _HOLE:
        _write(descriptor, memoryview(data), 0)
        return
    zeros = bytes(_HOLE)
    for offset in range(0, len(data), _HOLE):
        piece = data[offset : offset + _HOLE]
        if piece != zeros:
            _write(descriptor, memoryview(piece), offset)
    os.ftruncate(descriptor, len(data))


def _write(descriptor: int, view: memoryview, offset: int) -> None:
    while view:
        done = os.pwrite(descriptor, view, offset)
        view, offset = view[done:], offset + done
