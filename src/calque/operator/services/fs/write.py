"""A file written whole: aside first, then published in one moment."""

from __future__ import annotations

import os
import stat as modes
from collections.abc import Iterable

from calque.errors import IsADirectory, Unsupported
from calque.operator.options import WriteOptions
from calque.operator.services.fs.errors import about
from calque.operator.services.fs.root import Root
from calque.operator.services.fs.stat import describe
from calque.operator.services.fs.temporary import Temporary, refuse_reserved
from calque.values import Metadata

_FULL_MODE = 0o666


def write(
    root: Root, path: str, chunks: Iterable[bytes], options: WriteOptions, *, durable: bool
) -> Metadata:
    """Write all chunks as the file ``path``; after any failure the old file is untouched.

    A file that is replaced keeps its mode, a new one gets the umask's. A symlink at the path is
    replaced, not followed.
    """
    key = root.key(path)
    refuse_reserved(key)
    check_conditions(path, options.if_match)
    with about(path):
        old = target_status(root, key)
        temporary = Temporary.create(
            root, key, replace=not options.if_not_exists, mode=_FULL_MODE, durable=durable
        )
        try:
            for chunk in chunks:
                _write_all(temporary.descriptor, chunk)
            if old is not None:
                os.fchmod(temporary.descriptor, modes.S_IMODE(old.st_mode))
            found = temporary.publish(key, replace=not options.if_not_exists)
        except BaseException:
            temporary.discard()
            raise
    return describe(key, found)


def check_conditions(path: str, if_match: str | None) -> None:
    """A file system has no atomic compare-and-replace, and we never pretend."""
    if if_match is not None:
        raise Unsupported(
            f"{path!r}: a file system cannot replace a file only if it is unchanged",
            hint="Use if_not_exists, or leave the condition out",
        )


def target_status(root: Root, key: str) -> os.stat_result | None:
    """What stands at the target now; None when nothing does.

    Asked before anything is written, so that a bad name or a directory is refused at once.
    """
    try:
        with root.opened(key, os.O_PATH | os.O_NOFOLLOW) as descriptor:
            found = os.fstat(descriptor)
    except FileNotFoundError:
        return None
    if modes.S_ISDIR(found.st_mode):
        raise IsADirectory(f"{key!r} is a directory; it cannot be replaced by a file")
    return found if modes.S_ISREG(found.st_mode) else None


def _write_all(descriptor: int, chunk: bytes) -> None:
    view = memoryview(chunk)
    while view:
        view = view[os.write(descriptor, view) :]
