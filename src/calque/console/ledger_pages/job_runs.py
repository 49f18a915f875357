"""Jobs that the console was asked to go on with: each in a process of its own.

A process and not a thread: a run over trees keeps a core busy, and a process can be stopped so that
what it does is noted. It finds credentials as any command does that runs where the console runs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from calque.errors import ConditionNotMatch, NotFound

_GRACE = 20.0
"""Seconds that a run is given to note what it has done when the console ends."""
_MOST_SAID = 1024 * 1024


@dataclass
class _Run:
    process: subprocess.Popen[bytes]
    said: IO[bytes]


class JobRuns:
    """Runs by job. Safe between threads."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """``environment`` names the ledger of the jobs to the command."""
        self._environment = environment
        self._lock = threading.Lock()
        self._runs: dict[str, _Run] = {}
        self._failures: dict[str, str] = {}

    def resume(self, job_id: str) -> None:
        """Go on with a job; ConditionNotMatch where a run of it was begun here and is not over."""
        self.begin(job_id, ["jobs", "resume", job_id, "--yes", "--json"])

    def begin(self, job_id: str, arguments: Sequence[str], *, folder: str | None = None) -> None:
        """Run a command about a job, in the folder where its names are meant."""
        if folder is not None and not os.path.isdir(folder):
            raise NotFound(f"the folder of the command is gone: {folder}")
        with self._lock:
            self._reap()
            if job_id in self._runs:
                raise ConditionNotMatch(f"job {job_id} runs already", hint="Wait for it.")
            self._failures.pop(job_id, None)
            said = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the run is over
            process = subprocess.Popen(
                [sys.executable, "-m", "calque.cli", *arguments],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **self._environment},
                start_new_session=True,  # Ctrl-C ends the console, which then ends them in order
            )
            self._runs[job_id] = _Run(process, said)

    def is_begun(self, job_id: str) -> bool:
        """Whether a run of the job was begun here and is not over."""
        with self._lock:
            self._reap()
            return job_id in self._runs

    def failure(self, job_id: str) -> str | None:
        """Why the last run that was begun here did not go on, where it said so."""
        with self._lock:
            self._reap()
            return self._failures.get(job_id)

    def close(self) -> None:
        """Let every run note what it has done, and end."""
        with self._lock:
            for each in self._runs.values():
                each.process.send_signal(signal.SIGTERM)
            for each in self._runs.values():
                try:
                    each.process.wait(_GRACE)
                except subprocess.TimeoutExpired:
                    each.process.kill()  # what it did not note is found up to date by a resume
                    each.process.wait()
            self._reap()

    def _reap(self) -> None:
        for job_id, each in [*self._runs.items()]:
            if each.process.poll() is None:
                continue
            del self._runs[job_id]
            failure = _failure_in(each.said)
            if failure is not None:
                self._failures[job_id] = failure
            each.said.close()


def _failure_in(said: IO[bytes]) -> str | None:
    """What the command said of an error: the message that people get, and what to do."""
    said.seek(0)
    try:
        told: Any = json.loads(said.read(_MOST_SAID))
        error = told["error"]
        if isinstance(error, str):
            return error or None
        return " ".join(filter(None, (error["message"], error["hint"])))
    except (ValueError, KeyError, TypeError):
        return None
