"""``calque cat``: the bytes of one object on standard output."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from calque.cli.flags.quantities import parse_size
from calque.cli.locations import Location, LocationArgument, Options

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def cat(
    uri: LocationArgument,
    offset: Annotated[str, typer.Option(metavar="SIZE", help="Begin here: 512, 1MiB.")] = "0",
    length: Annotated[
        str | None, typer.Option(metavar="SIZE", help="No more than this many bytes.")
    ] = None,
    version: Annotated[str | None, typer.Option(metavar="ID", help="Of this version.")] = None,
    option: Options = None,
) -> None:
    """Write an object's bytes to standard output, as they arrive.

    Examples:

    - `calque cat s3://landing/a.csv | head`

    - `calque cat s3://landing/a.parquet --length 4` shows its first four bytes
    """
    location = Location.of(uri, option).file()
    stream = location.operator.read_stream(
        location.path,
        offset=parse_size(offset),
        length=None if length is None else parse_size(length),
        version=version,
    )
    for chunk in stream:
        sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()
