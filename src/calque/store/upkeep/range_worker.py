"""A process that reads ranges for another: ``python -m calque.store.upkeep.range_worker``.

It gets a job and then ranges on standard input, pickled, and answers each over a pipe.
It is nice: whoever serves callers on this machine goes first.
"""

from __future__ import annotations

import os
import pickle
import sys
from contextlib import ExitStack, closing
from typing import IO

from calque.child_process import open_answers
from calque.store.metabase.scan import Reader, open_reader
from calque.store.upkeep.scan import scan_range

NICE = 10


def serve_ranges(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer until the input ends."""
    job = pickle.load(requests)
    with ExitStack() as opened:
        reader: Reader | None = None
        while True:
            try:
                wanted = pickle.load(requests)
            except EOFError:
                return
            try:
                if reader is None:  # at the first range, which its error answers
                    reader = opened.enter_context(closing(open_reader(job.source)))
                answer: object = scan_range(reader, job, wanted)
            except Exception as error:
                answer = error
            pickle.dump(answer, answers, pickle.HIGHEST_PROTOCOL)
            answers.flush()


if __name__ == "__main__":
    os.nice(NICE)
    serve_ranges(sys.stdin.buffer, open_answers())
