"""A worker process of the local engine: takes tasks on its input, gives results on its output.

Started as ``python -m calque.loader.run.engines.worker``, so that nothing of the caller's program
is imported or run again.
"""

from __future__ import annotations

import os
import pickle
import sys
from typing import IO, Any

from calque.loader.run.engines.malloc import keep_freed_pages
from calque.loader.run.task import run_task


def serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    """Answer until the input ends: ``(True, output)`` or ``(False, error)``."""
    plan = pickle.load(requests)
    while True:
        try:
            task, attempt = pickle.load(requests)
        except EOFError:
            return
        pickle.dump(_answer(plan, task, attempt), replies, pickle.HIGHEST_PROTOCOL)
        replies.flush()


def _answer(plan: Any, task: Any, attempt: str) -> tuple[bool, Any]:
    try:
        return True, run_task(plan, task, attempt)
    except Exception as error:
        return False, error


def main() -> None:
    """Keep the reply channel for replies: anything printed goes to the error stream."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    keep_freed_pages()
    serve(sys.stdin.buffer, replies)


if __name__ == "__main__":
    main()
