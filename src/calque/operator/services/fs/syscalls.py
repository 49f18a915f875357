"""System calls that Python does not wrap. Each raises OSError as ``os`` functions do."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
from functools import cache

_libc = ctypes.CDLL(None, use_errno=True)

_NR_OPENAT2 = 437  # the same on every architecture
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_BENEATH = 0x08
_RENAME_NOREPLACE = 1
_FICLONE = 0x40049409
_SYNC_FILE_RANGE_WRITE = 2
_AT_EMPTY_PATH = 0x1000
_STATX_BTIME = 0x800


_HOW = struct.Struct("=QQQ")
"""struct open_how: flags, mode, resolve."""

_openat2 = _libc["syscall"]  # an object of its own, so that these types are openat2's alone
_openat2.restype = ctypes.c_long
_openat2.argtypes = (
    ctypes.c_long,
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.c_char_p,
    ctypes.c_size_t,
)


def _failure(path: bytes | str = "") -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), os.fsdecode(path))


def open_beneath(directory: int, path: str, flags: int, mode: int = 0) -> int:
    """openat2(RESOLVE_BENEATH): open a path that stays under ``directory``, symlinks included.

    EXDEV when it would leave. A rename somewhere above may ask us to try again (EAGAIN); a few
    times is enough unless somebody does it on purpose.
    """
    how = _HOW.pack(
        flags | os.O_CLOEXEC,
        mode if flags & os.O_CREAT else 0,
        _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS,
    )
    encoded = os.fsencode(path)
    for _ in range(32):
        descriptor: int = _openat2(_NR_OPENAT2, directory, encoded, how, _HOW.size)
        if descriptor >= 0:
            return descriptor
        if ctypes.get_errno() not in (errno.EAGAIN, errno.EINTR):
            break
    raise _failure(encoded)


@cache
def has_open_beneath() -> bool:
    """Whether this kernel (5.6 and later) and its sandbox let us call openat2."""
    here = os.open("/", os.O_PATH | os.O_CLOEXEC)
    try:
        os.close(open_beneath(here, ".", os.O_PATH))
    except OSError:
        return False
    finally:
        os.close(here)
    return True


def rename_no_replace(old_directory: int, old: str, directory: int, new: str) -> None:
    """renameat2(RENAME_NOREPLACE) between two open directories: EEXIST when ``new`` is taken."""
    if not hasattr(_libc, "renameat2"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    done: int = _libc.renameat2(
        old_directory, os.fsencode(old), directory, os.fsencode(new), _RENAME_NOREPLACE
    )
    if done != 0:
        raise _failure(new)


def clone(source: int, target: int) -> None:
    """FICLONE: ``target`` shares all blocks of ``source``; EOPNOTSUPP or EXDEV where it cannot."""
    fcntl.ioctl(target, _FICLONE, source)


def birth(descriptor: int) -> int | None:
    """When the file was made, in nanoseconds; None where kernel or file system do not tell.

    Inode numbers are used again at once; together with this they name one file for good.
    """
    if not hasattr(_libc, "statx"):
        return None
    answer = ctypes.create_string_buffer(256)
    if _libc.statx(descriptor, b"", _AT_EMPTY_PATH, _STATX_BTIME, answer) != 0:
        return None
    mask, seconds, nanoseconds = struct.unpack_from("=I76xqI", answer)
    return int(seconds) * 10**9 + int(nanoseconds) if mask & _STATX_BTIME else None


def sync_file_system(descriptor: int) -> None:
    """syncfs: all that was written to the file system of a descriptor is on its disk after this."""
    if not hasattr(_libc, "syncfs"):
        os.sync()
        return
    if _libc.syncfs(descriptor) != 0:
        raise _failure()


def start_writeback(descriptor: int, offset: int, length: int) -> None:
    """Let the disk begin with these pages now, so that the fsync at the end has less to wait for.

    Only a wish: where it is not known or not possible nothing happens.
    """
    if hasattr(_libc, "sync_file_range"):
        _libc.sync_file_range(
            descriptor,
            ctypes.c_int64(offset),
            ctypes.c_int64(length),
            _SYNC_FILE_RANGE_WRITE,
        )
