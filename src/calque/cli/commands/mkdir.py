"""``calque mkdir``: a folder, where services know such a thing."""

from __future__ import annotations

from typing import Annotated

import typer

from calque.cli.locations import Location, Options
from calque.errors import InvalidInput

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def mkdir(
    uris: Annotated[list[str], typer.Argument(metavar="LOCATION...", help="URIs or local paths.")],
    option: Options = None,
) -> None:
    """Make folders, and those above them; one that is there already is no error.

    In a bucket a folder is an object of no bytes whose name ends in a slash. Copies need none: they
    make the folders that they write into.

    Examples:

    - `calque mkdir s3://landing/2026/`

    - `calque mkdir ./warehouse/sales`
    """
    for uri in uris:
        location = Location.of(uri, option)
        if not location.path.strip("/"):
            raise InvalidInput(f"{uri} names no folder", hint="For example s3://bucket/folder/.")
        location.operator.create_dir(location.path.rstrip("/") + "/")
