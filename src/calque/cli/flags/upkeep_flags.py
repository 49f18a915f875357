"""What the commands that look after a store have in common: flags, a store, a bar of rows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from calque.store.embedded import EmbeddedStore
    from calque.store.upkeep.engines import ScanOptions
    from calque.store.upkeep.scan import Tell

Folder = Annotated[Path, typer.Argument(help="The folder of the store.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be done, and change nothing.")
]
Engine = Annotated[
    str,
    typer.Option(
        help="Where rows are read: **local** (this process), **process** (one beside it), "
        "**spark**, or **auto**: by the number of segments, Spark from a million on."
    ),
]
Master = Annotated[
    str | None, typer.Option(help="The master of a Spark cluster, for `--engine spark`.")
]


def scan_options(engine: str, master: str | None) -> ScanOptions:
    """The flags as options; a master alone asks for Spark."""
    from calque.store.upkeep.engines import ScanOptions

    wanted = "spark" if master is not None and engine == "auto" else engine
    return ScanOptions(engine=wanted, master=master)  # type: ignore[arg-type]  # it checks


@contextmanager
def open_store(folder: Path) -> Iterator[EmbeddedStore]:
    """The store for the length of a ``with`` block."""
    from calque.store.embedded import EmbeddedStore

    store = EmbeddedStore.open(folder)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def row_bar(label: str, *, show: bool = True) -> Iterator[Tell]:
    """A bar of rows, or pieces, on standard error; silent where it is no terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=not (show and sys.stderr.isatty()),
        transient=True,
    )
    with bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
