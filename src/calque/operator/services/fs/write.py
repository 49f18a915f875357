"""A file written whole: aside first, then published in one moment."""

from __future__ import annotations

import os
import stat as modes
from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol, TypeVar

from calque.errors import Unsupported
from calque.operator.options import WriteOptions
from calque.operator.services.fs.errors import map_errors
from calque.operator.services.fs.marker import refuse_reserved
from calque.operator.services.fs.root import Root
from calque.operator.services.fs.stat import check_regular, describe
from calque.operator.services.fs.temporary import Temporary
from calque.values import Metadata

T = TypeVar("T")

_FULL_MODE = 0o666


class Send(Protocol):
    """Passes one request through the layers, by its verb."""

    def __call__(self, verb: str, request: Callable[[], T], /) -> T: ...


def write(
    root: Root, path: str, chunks: Iterable[bytes], options: WriteOptions, durable: bool, send: Send
) -> Metadata:
    """Write all chunks as the file ``path``; after any failure the old file is untouched.

    A file that is replaced keeps its mode, a new one gets the umask's. A symlink at the path is
    replaced, not followed. ``send`` passes each request through the layers; chunks are asked for
    between requests, because they may come out of requests of another service.
    """
    key = root.key(path)
    refuse_reserved(key)
    check_conditions(path, options.if_match)
    replace = not options.if_not_exists
    made: list[Temporary] = []

    def begin() -> Temporary:
        _discard(made)  # of an attempt whose answer was lost
        made.append(Temporary.create(root, key, replace=replace, mode=_FULL_MODE, durable=durable))
        return made[-1]

    with map_errors(root.absolute(key)):
        old = target_status(root, key)
        offset = 0
        try:
            temporary = send("write_begin", begin)
            for chunk in chunks:
                send("write_chunk", partial(write_at, temporary.descriptor, chunk, offset))
                offset += len(chunk)
            if old is not None:
                # Before it takes the name: not for a moment may it be read by wider rights.
                os.fchmod(temporary.descriptor, modes.S_IMODE(old.st_mode))
            found = send("write_commit", lambda: temporary.publish(key, replace=replace))
        except BaseException:
            _discard(made)
            raise
    return describe(key, found)


def _discard(made: list[Temporary]) -> None:
    while made:
        made.pop().discard()


def check_conditions(path: str, if_match: str | None) -> None:
    """A file system has no atomic compare-and-replace, and we never pretend."""
    if if_match is not None:
        raise Unsupported(
            f"{path!r}: a file system cannot replace a file only if it is unchanged",
            hint="Use if_not_exists, or leave the condition out",
        )


def target_status(root: Root, key: str) -> os.stat_result | None:
    """The regular file that a reader finds at the target now; None when there is none.

    Asked before anything is written, so that a bad name is refused at once, and so that neither a
    directory nor a device (``/dev/null``) is ever replaced by a file.
    """
    try:
        with root.hold_open(key, os.O_PATH | os.O_NOFOLLOW) as descriptor:
            found = os.fstat(descriptor)
    except FileNotFoundError:
        return None
    if not modes.S_ISLNK(found.st_mode):
        check_regular(found, root.absolute(key))
        return found
    try:
        with root.hold_open(key, os.O_PATH) as descriptor:
            behind = os.fstat(descriptor)
    except OSError:
        return None  # it dangles, loops or leads out: it will be replaced, not followed
    check_regular(behind, root.absolute(key))
    return behind


def write_at(descriptor: int, chunk: bytes, offset: int) -> None:
    """Write all of it at its place, whatever the kernel takes at once."""
    view = memoryview(chunk)
    while view:
        done = os.pwrite(descriptor, view, offset)
        if hasattr(os, "posix_fadvise"):  # the disk begins now, so that fsync finds little left
            os.posix_fadvise(descriptor, offset, done, os.POSIX_FADV_DONTNEED)
        view, offset = view[done:], offset + done
