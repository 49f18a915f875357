"""A program in a process of its own, forked from one that has imported what it needs.

Stands in for ``subprocess`` and ``[sys.executable, "-c", text, ...]`` where the start of the
interpreter is not the point: the process has its own folder, environment, arguments, streams and
exit code, may be killed, and does not pay the second of its imports (``tests/forks.py``).
"""

from __future__ import annotations

import atexit
import io
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.reduction import DupFd
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from calque import faults
from tests.forks import FORKS

COMMAND = "from calque.cli.main import run\nrun()\n"
"""The program that is the command ``calque``."""
PATIENCE = 280.0


class Program:
    """One that runs; ``stdout`` is a pipe of text, what it complains of is kept in a file."""

    def __init__(
        self,
        text: str,
        *arguments: object,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self._code: int | None = None
        reading, writing = os.pipe()
        self._complaints = tempfile.TemporaryFile(prefix="calque-program-")  # noqa: SIM115
        words = [str(each) for each in arguments]
        place, environment = str(cwd or Path.cwd()), dict(os.environ if env is None else env)
        self.args = ["calque" if text == COMMAND else "-c", *words]
        streams = _Streams(writing, self._complaints.fileno())
        self._process = FORKS.Process(
            target=_main,
            args=(text, self.args, place, environment, streams),
            daemon=True,  # one that a failed test left behind ends with the tests
        )
        try:
            self._process.start()
        finally:
            os.close(writing)
        self.stdout = io.TextIOWrapper(os.fdopen(reading, "rb"))

    @property
    def pid(self) -> int:
        pid = self._process.pid
        assert pid is not None
        return pid

    @property
    def returncode(self) -> int | None:
        """As of :mod:`subprocess`: negative is a signal, None still runs."""
        self._code = self._process.exitcode
        return self._code

    def poll(self) -> int | None:
        """The same, as a question."""
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal; from any thread, so that it must not ask how it ended: that is told
        once, and another thread may wait for it."""
        if self._code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it, now."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def wait(self, timeout: float = PATIENCE) -> int:
        """Its exit code, once it has one."""
        self._process.join(timeout)
        code = self.returncode
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout, stderr=self.stderr)
        return code

    @property
    def stderr(self) -> str:
        """What it has complained of so far."""
        size = os.fstat(self._complaints.fileno()).st_size
        return os.pread(self._complaints.fileno(), size, 0).decode(errors="replace")

    def communicate(self, timeout: float = PATIENCE) -> tuple[str, str]:
        """All that it says until its end; a process that it started must not hold its output."""
        said = self.stdout.read()
        self.stdout.close()
        self.wait(timeout)
        return said, self.stderr

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Whoever leaves early ends it."""
        if error is not None:
            self.kill()
        self.wait()
        self.close()

    def close(self) -> None:
        """Let go of its streams."""
        self.stdout.close()
        self._complaints.close()


def run_program(
    text: str,
    *arguments: object,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    check: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run it to its end; with ``check`` that must be a good one."""
    with Program(text, *arguments, env=env, cwd=cwd) as program:
        out, err = program.communicate()
    done = subprocess.CompletedProcess(program.args, program.wait(), out, err)
    assert not check or done.returncode == 0, err
    return done


class _Streams:
    """Where a program writes; goes with it into its process."""

    def __init__(self, out: int, err: int) -> None:
        self._numbers = (out, err)

    def __getstate__(self) -> Any:
        return [DupFd(number) for number in self._numbers]

    def __setstate__(self, state: Any) -> None:
        self._numbers = tuple(each.detach() for each in state)

    def open(self) -> None:
        nothing = os.open(os.devnull, os.O_RDONLY)
        for number, opened in enumerate((nothing, *self._numbers)):
            os.dup2(opened, number)
            os.close(opened)
        sys.stdin = io.TextIOWrapper(os.fdopen(0, "rb", closefd=False))
        sys.stdout = io.TextIOWrapper(os.fdopen(1, "wb", closefd=False))
        sys.stderr = io.TextIOWrapper(
            os.fdopen(2, "wb", closefd=False), errors="backslashreplace", line_buffering=True
        )


def _main(
    text: str, arguments: list[str], cwd: str, env: dict[str, str], streams: _Streams
) -> None:
    # It may start others.
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    streams.open()
    faults.arm(env.get("CALQUE_FAULT", ""))  # else it is read when the module is imported
    sys.argv = arguments
    try:
        exec(compile(text, "<program>", "exec"), {"__name__": "__main__"})
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
