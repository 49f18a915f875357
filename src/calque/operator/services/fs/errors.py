"""From errno to calque's errors: one table."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from calque.errors import (
    AlreadyExists,
    CalqueError,
    InvalidInput,
    IsADirectory,
    NotFound,
    PathEscape,
    PermissionDenied,
    ResourceExhausted,
    TimedOut,
    Unavailable,
    Unexpected,
    Unsupported,
)


@dataclass(frozen=True, slots=True)
class Meaning:
    """What an errno means to a caller. ``retryable`` None leaves it to the kind."""

    kind: type[CalqueError]
    says: str
    hint: str | None = None
    retryable: bool | None = None


_ROOM = "Free some space, raise the quota, or choose another place"
_RIGHTS = "Check the owner and mode of the file and of every directory above it"

TABLE: dict[int, Meaning] = {
    errno.ENOENT: Meaning(NotFound, "does not exist"),
    errno.ENOTDIR: Meaning(
        InvalidInput,
        "lies under a file, not a directory",
        "A file cannot hold files: remove it or choose another path",
    ),
    errno.EISDIR: Meaning(IsADirectory, "is a directory"),
    errno.EEXIST: Meaning(AlreadyExists, "exists already"),
    errno.ENOTEMPTY: Meaning(IsADirectory, "is a directory that is not empty"),
    errno.EACCES: Meaning(PermissionDenied, "may not be accessed", _RIGHTS),
    errno.EPERM: Meaning(PermissionDenied, "may not be changed", _RIGHTS),
    errno.EROFS: Meaning(
        PermissionDenied,
        "lies on a read-only file system",
        "Mount it writable or choose another place",
    ),
    errno.ENOSPC: Meaning(ResourceExhausted, "found the disk full", _ROOM),
    errno.EDQUOT: Meaning(ResourceExhausted, "found the disk quota used up", _ROOM),
    errno.EFBIG: Meaning(InvalidInput, "is larger than the file system or a limit allows"),
    errno.EOVERFLOW: Meaning(ResourceExhausted, "is larger than the system can tell"),
    errno.EMLINK: Meaning(ResourceExhausted, "has too many links"),
    errno.EMFILE: Meaning(
        ResourceExhausted, "found too many open files", "Lower the concurrency or raise ulimit -n"
    ),
    errno.ENFILE: Meaning(ResourceExhausted, "found too many open files on this machine"),
    errno.ENOMEM: Meaning(ResourceExhausted, "found no memory left"),
    errno.ENAMETOOLONG: Meaning(
        InvalidInput, "has a name that is too long", "Most file systems allow 255 bytes a name"
    ),
    errno.EINVAL: Meaning(InvalidInput, "has a name this file system refuses"),
    errno.EILSEQ: Meaning(InvalidInput, "has a name this file system cannot encode"),
    errno.ELOOP: Meaning(InvalidInput, "leads through too many symlinks"),
    errno.EXDEV: Meaning(
        PathEscape,
        "leads out of the root through a symlink",
        "Open an operator whose root holds both the link and what it points to",
    ),
    errno.EIO: Meaning(
        Unavailable,
        "met a read or write error of the disk",
        "See the kernel log; the disk may be failing",
        retryable=False,
    ),
    errno.ENXIO: Meaning(Unsupported, "is a device or socket, not a file"),
    errno.ENODEV: Meaning(Unsupported, "is a device or socket, not a file"),
    errno.EOPNOTSUPP: Meaning(Unsupported, "lies on a file system that cannot do this"),
    errno.ENOSYS: Meaning(Unsupported, "needs a newer kernel"),
    errno.EBUSY: Meaning(Unavailable, "is busy"),
    errno.ETXTBSY: Meaning(Unavailable, "is being executed"),
    errno.EAGAIN: Meaning(Unavailable, "changes too fast to be resolved"),
    errno.ESTALE: Meaning(Unavailable, "was lost by its network file system"),
    errno.EHOSTDOWN: Meaning(Unavailable, "lies on a server that is down"),
    errno.ENOLCK: Meaning(Unavailable, "could not be locked"),
    errno.ETIMEDOUT: Meaning(TimedOut, "did not answer in time"),
}


def translate(error: OSError, path: str) -> CalqueError:
    """The calque error for an OSError about ``path``."""
    meaning = TABLE.get(error.errno or 0)
    if meaning is None:
        return Unexpected(f"{path!r}: {os.strerror(error.errno) if error.errno else error}")
    return meaning.kind(f"{path!r} {meaning.says}", hint=meaning.hint, retryable=meaning.retryable)


@contextmanager
def map_errors(path: str) -> Iterator[None]:
    """Every OSError inside becomes a calque error that names ``path``."""
    try:
        yield
    except CalqueError:
        raise  # our own errors inherit from OSError too
    except OSError as error:
        raise translate(error, path) from error


@contextmanager
def map_lookup_errors(path: str) -> Iterator[None]:
    """Like :func:`about`, for verbs that only look: nothing can be there under a file."""
    try:
        with map_errors(path):
            yield
    except InvalidInput as error:
        if isinstance(error.__cause__, NotADirectoryError):
            raise NotFound(f"{path!r} does not exist") from error.__cause__
        raise
