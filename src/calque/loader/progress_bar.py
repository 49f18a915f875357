"""A load as it goes on: a bar on a terminal, a line that changes in a notebook."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from calque.loader.model.load_progress import LoadProgress, OnProgress
from calque.notebook import is_notebook, notebook_line
from calque.values import count_of, size_text


@contextmanager
def shown_progress(wanted: OnProgress | bool | None) -> Iterator[OnProgress | None]:
    """Who is told: the caller's function, a bar where one is asked for, a line in notebooks."""
    if callable(wanted):
        yield wanted
    elif wanted is False or (wanted is None and not is_notebook()):
        yield None
    elif is_notebook():
        with notebook_line() as line:
            yield lambda done: line(describe_progress(done))
    else:
        with load_bar() as update:
            yield update


@contextmanager
def load_bar(*, show: bool = True) -> Iterator[OnProgress]:
    """A bar of bytes with files and rows beside it; silent where there is no terminal."""
    if not (show and sys.stderr.isatty()):
        yield lambda done: None
        return
    # Here, since most loads run where nobody looks at a bar.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TransferSpeedColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[done]}"),
        TransferSpeedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task: TaskID = bar.add_task("listing", total=None, done="")

        def update(done: LoadProgress) -> None:
            bar.update(
                task,
                description=done.phase,
                completed=done.bytes,
                total=done.bytes_total or None,
                done=_counts(done),
            )

        yield update


def describe_progress(done: LoadProgress) -> str:
    """How far a load is, in a line: the phase, and what is counted in it."""
    if not done.files_total:
        return done.phase
    of = f"{size_text(done.bytes)} of {size_text(done.bytes_total)}"
    return f"{done.phase}: {_counts(done)}, {of}"


def _counts(done: LoadProgress) -> str:
    if not done.files_total:
        return ""
    files = f"{done.files:,} of {count_of(done.files_total, 'file')}"
    return f"{files}, {count_of(done.rows, 'row')}"
