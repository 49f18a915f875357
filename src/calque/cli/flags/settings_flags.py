"""The flags that say which settings hold, for every command of loads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Config = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="The calque.toml to read.")
]
LedgerUrl = Annotated[
    str | None,
    typer.Option("--ledger", metavar="URL", help="Where loads are remembered: a path or a URL."),
]
Spark = Annotated[
    str | None,
    typer.Option("--spark", metavar="URL", help="A Spark master; `local` for plain processes."),
]
TableArgument = Annotated[
    str, typer.Argument(metavar="TABLE", help="A name of calque.toml, a path, iceberg:PATH.")
]
RowCount = Annotated[
    int, typer.Option("--rows", "-n", min=0, max=10_000, help="How many rows to show.")
]
