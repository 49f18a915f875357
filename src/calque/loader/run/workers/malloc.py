"""Memory of a worker process: blocks of some megabytes are taken and given back all the time.

The C library hands their pages back to the kernel at once and gets them anew, cleared, for the
next block, which costs a sixth of a task's time. A worker keeps them instead.
"""

from __future__ import annotations

import ctypes

from calque.values import MIB

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT = 64 * MIB
_LARGEST = 32 * MIB
"""The most that glibc lets a block have that comes from the heap."""


def keep_freed_pages() -> None:
    """For a process that does nothing but tasks. Without glibc nothing happens."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(_MMAP_THRESHOLD, _LARGEST)
    mallopt(_TRIM_THRESHOLD, _KEPT)
