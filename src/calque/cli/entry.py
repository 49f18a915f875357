"""Where the process of the command begins and ends.

What a command did is told by its exit code, so nothing may spoil it afterwards. Libraries of loads
keep threads of C++ and Rust; when the last objects of a process are torn down, one that is not yet
done can end it by ``terminate called without an active exception``, after the work was good. So
all that Python itself does at the end is done, and then the process ends without the rest.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
from contextlib import suppress
from typing import Any, NoReturn

from calque.cli.main import run

_INTERRUPTED = 130
START = 200_000
"""Objects, with those of all modules that a command imports: a short one makes about half."""


def main() -> NoReturn:
    """Run the command; an error that nobody expected shows itself as always."""
    collect_after_start()
    try:
        run()
    except SystemExit as stop:
        leave(_code_of(stop))
    leave(0)


def collect_after_start() -> None:
    """Look for no garbage while modules are imported, then as always.

    There is none to find in them, and looking takes an eighth of the start of a load.
    """
    usual = gc.get_threshold()

    def begin(phase: str, info: dict[str, Any]) -> None:
        gc.set_threshold(*usual)
        gc.callbacks.remove(begin)

    gc.callbacks.append(begin)
    gc.set_threshold(START, *usual[1:])


def leave(code: int) -> NoReturn:
    """End the process with this code, once threads, exit functions and streams are done.

    Whoever has stopped it by hand does not wait for threads: what they may leave behind was seen to
    before, and a request that nobody answers would hold the terminal for a minute.
    """
    try:
        if code != _INTERRUPTED:
            threading._shutdown()  # type: ignore[attr-defined]  # waits for them, as Python does
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
    finally:
        os._exit(code)


def _code_of(stop: SystemExit) -> int:
    if stop.code is None or isinstance(stop.code, int):
        return stop.code or 0
    print(stop.code, file=sys.stderr)
    return 1
