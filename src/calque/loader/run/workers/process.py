"""A worker process, as the one that started it sees it."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from signal import SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV
from typing import Generic, TypeVar, cast

from calque.child_process import start_child
from calque.errors import Unexpected
from calque.loader.run.workers.main import LENGTH_BYTES

Result = TypeVar("Result")


class WorkerDied(Unexpected):
    """A worker process ended in the middle of its work."""

    retryable = True


class WorkerCrashed(WorkerDied):
    """It was brought down by native code: a library, over a file that it was given."""


_CRASH_SIGNALS = {-number for number in (SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL)}


class WorkerProcess(Generic[Result]):
    """One process that calls ``work``, for one caller at a time."""

    def __init__(self, work: Callable[..., Result]) -> None:
        self._unsent: list[object] = [work]
        self._process, self._replies = start_child(
            "calque.loader.run.workers.main", {**os.environ, "PYTHONPATH": _import_path()}
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def run(self, *arguments: object, about: str) -> Result:
        """What the work gives; raises what it raised, or WorkerDied, which names ``about``."""
        try:
            # Only now what it is to do: a process that died at its start is told like any other.
            while self._unsent:
                self._send(self._unsent.pop())
            self._send(arguments)
            reply = self._receive()
        except (EOFError, OSError) as error:
            code = self._process.wait()
            died = WorkerCrashed if code in _CRASH_SIGNALS else WorkerDied
            raise died(f"a worker process ended with {code} in {about}") from error
        good, answer = pickle.loads(reply)
        if good:
            return cast(Result, answer)
        raise answer

    def stop(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        # Closing sends what a caller in another thread has only half sent, to nobody.
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._replies.close()

    def _receive(self) -> bytes:
        length = int.from_bytes(self._read(LENGTH_BYTES), "big")
        return self._read(length)

    def _read(self, length: int) -> bytes:
        data = self._replies.read(length)
        if len(data) < length:
            raise EOFError("the process has ended")
        return data

    def _send(self, message: object) -> None:
        assert self._process.stdin is not None
        pickle.dump(message, self._process.stdin, pickle.HIGHEST_PROTOCOL)
        self._process.stdin.flush()


def _import_path() -> str:
    """Workers must find the very calque that is running, however it was found."""
    home = str(Path(__file__).parents[4])
    given = os.environ.get("PYTHONPATH", "")
    return f"{home}{os.pathsep}{given}" if given else home
