"""What a worker process runs: it takes arguments on its input and gives results over a pipe.

Started as ``python -m calque.loader.run.workers.main``, so that nothing of the caller's program
is imported or run again.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from typing import IO, Any

from calque.child_process import open_answers
from calque.loader.run.workers.malloc import keep_freed_pages

LENGTH_BYTES = 8
"""Of the length that stands before each reply."""


def serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    """Answer until the input ends, by a pickled ``(True, result)`` or ``(False, error)``."""
    work = pickle.load(requests)
    while True:
        try:
            arguments = pickle.load(requests)
        except EOFError:
            return
        reply = _answer(work, arguments)
        # The length goes first: a reply that cannot be unpickled must not spoil the one after it.
        replies.write(len(reply).to_bytes(LENGTH_BYTES, "big") + reply)
        replies.flush()


def _answer(work: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    try:
        return pickle.dumps((True, work(*arguments)), pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        return pickle.dumps((False, error), pickle.HIGHEST_PROTOCOL)


def main() -> None:
    """Answer over the pipe that ``process`` has given it."""
    keep_freed_pages()
    serve(sys.stdin.buffer, open_answers())


if __name__ == "__main__":
    main()
