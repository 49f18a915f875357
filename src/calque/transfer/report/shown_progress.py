"""A run over trees as it goes on: a line on a terminal or in a notebook, or whoever asks for it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from calque.notebook import is_notebook, notebook_line
from calque.ticker import call_every
from calque.transfer.report.progress import TreeProgress
from calque.values import size_text

_LOOK_SECONDS = 0.2
_SECONDS_TO_GUESS_FROM = 2
"""The first bytes tell nothing of the last: months are left after a small file and a slow start."""
CLEAR_LINE = "\r\x1b[K"
"""What clears the line of a terminal that shows how far it is."""

OnTreeProgress = Callable[[TreeProgress], None]
"""Called several times a second while a run goes on, and once more when it is over."""


@contextmanager
def shown_progress(progress: TreeProgress, wanted: OnTreeProgress | bool | None) -> Iterator[None]:
    """Tell the caller's function; else show a line where one is asked for, or in a notebook."""
    with ExitStack() as held:
        if callable(wanted):
            held.enter_context(report_progress(progress, wanted))
        elif wanted is not False and is_notebook():
            line = held.enter_context(notebook_line())
            held.enter_context(describe_often(progress, line, _LOOK_SECONDS))
        elif wanted and sys.stderr.isatty():
            held.enter_context(terminal_line(progress))
        yield


@contextmanager
def report_progress(progress: TreeProgress, tell: OnTreeProgress) -> Iterator[None]:
    """Tell how far it is until it is over, and then."""
    with call_every(lambda: tell(progress), _LOOK_SECONDS):
        yield
    tell(progress)


@contextmanager
def terminal_line(progress: TreeProgress) -> Iterator[None]:
    """A line of the terminal that is renewed, and gone in the end."""

    def write(line: str) -> None:
        sys.stderr.write(f"{CLEAR_LINE}{line}")
        sys.stderr.flush()

    try:
        with describe_often(progress, write, _LOOK_SECONDS):
            yield
    finally:
        sys.stderr.write(CLEAR_LINE)


@contextmanager
def describe_often(
    progress: TreeProgress, say: Callable[[str], None], every: float
) -> Iterator[None]:
    """Say every so many seconds how far it is."""
    begun = time.monotonic()

    def tell() -> None:
        with progress.showing:
            say(describe_progress(progress, time.monotonic() - begun))

    with call_every(tell, every):
        yield


def describe_progress(progress: TreeProgress, seconds: float) -> str:
    """How far a run is after so many seconds, in a line."""
    done = f"{progress.ended} copied, {size_text(progress.bytes_moved)}"
    if progress.to_delete:
        share = progress.deleted / progress.to_delete
        return f"deleting: {progress.deleted} of {progress.to_delete} ({share:.0%})"
    if progress.listing and progress.phase != "copying":
        return f"{progress.phase}: {progress.listed} listed so far"
    if progress.listing:
        return f"{progress.listed} listed so far, {done} of {progress.to_copy}"
    share = progress.bytes_moved / progress.bytes_to_copy if progress.bytes_to_copy else 1.0
    left = ""
    if 0 < share < 1 and seconds >= _SECONDS_TO_GUESS_FROM:
        left = f", {_rough_time(seconds * (1 - share) / share)} left"
    return f"{progress.phase}: {done} of {size_text(progress.bytes_to_copy)} ({share:.0%}){left}"


def _rough_time(seconds: float) -> str:
    """As people say it: ``15 s``, ``20 min``, ``3 h``, ``4 days``."""
    for unit, length in (("s", 1), ("min", 60), ("h", 3600)):
        if seconds < 100 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 86400:.0f} days"
