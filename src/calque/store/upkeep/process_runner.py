"""The scan in another process of this machine: a server's callers are not held up by it.

In the server's own process the scan and the calls would take turns at one interpreter lock.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import IO

from calque.child_process import start_child
from calque.errors import Unavailable
from calque.store.metabase.scan import Range, Snapshot
from calque.store.upkeep.scan import RangeResult, ScanJob

_WORKER = "calque.store.upkeep.range_worker"


class ProcessRunner:
    """Range after range in a process that ends with the scan."""

    name = "process"

    def run(
        self, snapshot: Snapshot, job: ScanJob, ranges: Sequence[Range]
    ) -> Iterator[RangeResult]:
        # The password goes through a pipe to our own child, and nowhere else.
        own = replace(job, source=snapshot.own_source)
        worker, answers = start_child(_WORKER)
        with worker, answers:
            assert worker.stdin is not None
            try:
                _send(worker.stdin, own)
                for each in ranges:
                    _send(worker.stdin, each)
                    yield _receive(answers)
            finally:
                with suppress(BrokenPipeError):
                    worker.stdin.close()
                worker.terminate()


def _send(pipe: IO[bytes], what: object) -> None:
    try:
        pickle.dump(what, pipe, pickle.HIGHEST_PROTOCOL)
        pipe.flush()
    except BrokenPipeError as error:
        raise _died() from error


def _receive(pipe: IO[bytes]) -> RangeResult:
    try:
        answer = pickle.load(pipe)
    except (EOFError, pickle.UnpicklingError) as error:
        raise _died() from error
    if isinstance(answer, Exception):
        raise answer
    found: RangeResult = answer
    return found


def _died() -> Unavailable:
    return Unavailable(
        "the process that reads the segments has ended: nothing was done with what was found",
        hint="Run it again; was it killed for its memory?",
    )
