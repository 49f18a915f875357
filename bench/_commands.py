"""Commands that are measured from outside: seconds, CPU and peak memory of each, start counted."""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_LOOK_EVERY = 0.02
_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
"""Where it is set our every start compiles what it imports, and an installed peer's does not."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What one run of a command took."""

    seconds: float
    cpu: float
    peak: int = 0
    """Bytes held at most; only where it was asked for."""


def measure(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    memory: bool = False,
    killed: bool = False,
) -> Taken:
    """Run a command to its end. One that fails stops the benchmark and shows what it said;
    with ``killed`` it has to be killed by a signal instead."""
    own = {**os.environ, **(environment or {})}
    with tempfile.TemporaryFile() as said:
        os.sync()  # nobody waits for what was written before it
        began = time.perf_counter()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            env={k: v for k, v in own.items() if k != _NO_BYTECODE},
        )
        peak = _watch_memory(process.pid) if memory else 0
        _, status, used = os.wait4(process.pid, 0)
        taken = time.perf_counter() - began
        process.returncode = code = os.waitstatus_to_exitcode(status)
        if (code >= 0) if killed else (code != 0):
            said.seek(0)
            text = said.read().decode(errors="replace")[-2000:]
            raise SystemExit(f"{command} ended with {code}:\n{text}")
    return Taken(taken, used.ru_utime + used.ru_stime, peak)


def median_of(takes: Sequence[Taken]) -> Taken:
    """The median of each figure by itself."""
    return Taken(
        statistics.median(each.seconds for each in takes),
        statistics.median(each.cpu for each in takes),
        int(statistics.median(each.peak for each in takes)),
    )


def peak_memory(pid: int) -> int:
    """The most that a process has held since its program began; 0 once it has ended.

    Not ``ru_maxrss``, which a child inherits from whoever started it.
    """
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except (FileNotFoundError, ProcessLookupError):
        pass
    return 0


def _watch_memory(pid: int) -> int:
    """Look until the process has ended, without taking its exit code away."""
    peak = 0
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        peak = max(peak, peak_memory(pid))
        time.sleep(_LOOK_EVERY)
    return peak
