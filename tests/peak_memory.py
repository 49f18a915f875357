"""What a process has held at most, for programs that tests start."""

from __future__ import annotations

from pathlib import Path


def peak_mebibytes() -> int:
    """Of this process, since its program began.

    Not ``ru_maxrss``: a program inherits that from whoever started it, so that a large test process
    would be taken for it.
    """
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) // 1024
