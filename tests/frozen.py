"""A process that stands still, and what it is told before it goes on."""

from __future__ import annotations

import ctypes
import os
import signal


def wake_with(pid: int, number: int) -> None:
    """Send a frozen process a signal that strikes where it stands, and let it go on.

    To its main thread: sent to the process any thread may take it, and while that one waits for a
    processor the main thread does what it would have been kept from.
    """
    ctypes.CDLL(None).tgkill(pid, pid, number)
    os.kill(pid, signal.SIGCONT)
