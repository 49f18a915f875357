"""What commands print: tables and bars for people, JSON for programs, plain lines for pipes."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calque.cli.logs import log_as_json
from calque.errors import CalqueError, ConfigInvalid, StatementInvalid
from calque.values import printable, size_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

JsonFlag = Annotated[bool, typer.Option("--json", help="Print the result as JSON for programs.")]

OK, FAILED, USAGE, PARTLY = 0, 1, 2, 3
"""Exit codes: done, failed, wrong usage, partly done."""


def code_of(error: CalqueError) -> int:
    """What a command ends with that an error has ended."""
    return USAGE if isinstance(error, ConfigInvalid | StatementInvalid) else FAILED


IDS = {"job", "load", "load_id"}
"""Columns that hold ids."""

LEAST_LEGIBLE = 20
"""Letters to which a column of a table may be folded."""


def console() -> Console:
    """The console of results (standard output)."""
    from rich.console import Console

    return Console(soft_wrap=not sys.stdout.isatty(), highlight=False)


def say(line: str, *, level: int = logging.INFO) -> None:
    """Lines for people; they go to standard error so that results stay clean.

    Where the log is JSON (``--log json``) they are records of it, of this level.

    Names and words of servers stand in them: what could trick a terminal is escaped.
    """
    if log_as_json(line, level):
        return
    from rich.console import Console
    from rich.text import Text

    shown = "\n".join(printable(each) for each in line.split("\n"))
    Console(stderr=True, highlight=False, soft_wrap=True).print(Text(shown))


def as_json(value: Any) -> None:
    """The result as one JSON document on standard output."""
    json.dump(value, sys.stdout, default=_plain, ensure_ascii=False, indent=2)
    sys.stdout.write("\n")


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str = "") -> None:
    """A table on a terminal, or its rows one below the other where that is too narrow for it;
    tab-separated lines with a header elsewhere."""
    names = [printable(column) for column in columns]
    if not sys.stdout.isatty():
        print("\t".join(names))
        for row in rows:
            print("\t".join(_cell(value) for value in row))
        return
    cells = [[_cell(value) for value in row] for row in rows]
    if cells and not _has_room(names, cells):
        for row in cells:
            record({name: value for name, value in zip(names, row, strict=True) if value})
            print()
        return
    _draw(names, cells, title)


def _has_room(names: Sequence[str], cells: Sequence[Sequence[str]]) -> bool:
    """Whether all columns stand side by side, wide ones folded as far as they are legible."""
    from rich.cells import cell_len

    needed = 3 * len(names) + 1
    for name, *column in zip(names, *cells, strict=True):
        longest = max(map(cell_len, (name, *column)))
        needed += longest if name in IDS else min(longest, LEAST_LEGIBLE)
    return needed <= console().width


def _draw(names: Sequence[str], cells: Sequence[Sequence[str]], title: str) -> None:
    from rich.table import Table
    from rich.text import Text

    drawn = Table(title=title or None, title_justify="left", header_style="bold")
    for index, name in enumerate(names):
        # An id is there to be copied: it stands on one line, however narrow the terminal.
        longest = max((len(row[index]) for row in cells), default=0) if name in IDS else None
        drawn.add_column(Text(name), overflow="fold", no_wrap=name in IDS, min_width=longest)
    for row in cells:
        drawn.add_row(*map(Text, row))
    console().print(drawn)


def record(values: Mapping[str, Any]) -> None:
    """One thing and its properties, a line each."""
    width = max((len(name) for name in values), default=0)
    for name, value in values.items():
        print(f"{name:<{width}}  {_cell(value)}")


def size(count: int | float) -> str:
    """Bytes as people read them: ``1.5 MiB``."""
    return size_text(count)


def moment(value: datetime) -> str:
    """A time as people read it, in UTC: ``2026-11-16 03:12:31Z``; one without a zone as it is."""
    if value.tzinfo is None:
        return f"{value:%Y-%m-%d %H:%M:%S}"
    return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"


def seconds(value: float) -> str:
    """How long something took: ``0.25``."""
    return f"{value:.2f}"


@contextmanager
def byte_bar(label: str, total: int | None, *, show: bool = True) -> Iterator[Progress]:
    """A progress bar of bytes on standard error; silent where it is no terminal.

    The one task in it has id 0: ``bar.update(bar.tasks[0].id, completed=n)``.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=not (show and sys.stderr.isatty()),
        transient=True,
    )
    with bar:
        bar.add_task(label, total=total)
        yield bar


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, Mapping):
        return printable(", ".join(f"{key}={item}" for key, item in value.items()))
    return printable(str(value))


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, set | frozenset | tuple):
        return list(value)
    return str(value)
