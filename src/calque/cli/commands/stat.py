"""``calque stat``: what is known of one object."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any

import typer

from calque.cli.locations import Location, LocationArgument, Options
from calque.cli.output import JsonFlag, as_json, record, size
from calque.values import Metadata

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def stat(
    uri: LocationArgument,
    version: Annotated[str | None, typer.Option(metavar="ID", help="Of this version.")] = None,
    option: Options = None,
    json: JsonFlag = False,
) -> None:
    """Show what is known of an object: size, time, etag, headers, metadata, tags.

    Examples:

    - `calque stat s3://landing/a.csv`

    - `calque stat report.csv --json`
    """
    location = Location.of(uri, option)
    path = location.prefix if location.is_local_directory else location.path
    known = _known_fields(location.operator.stat(path, version=version))
    known = {"location": location.uri, **known}
    if json:
        as_json(known)
    else:
        if "size" in known:
            known["size"] = f"{size(known['size'])} ({known['size']} bytes)"
        record(known)


def _known_fields(metadata: Metadata) -> dict[str, Any]:
    """What is not unknown: absent headers are left out."""
    found = {field.name: getattr(metadata, field.name) for field in fields(metadata)}
    if (checksum := metadata.checksum) is not None:
        found["checksum"] = f"{checksum.algorithm}:{checksum.value}"
    found["user"] = dict(metadata.user) or None
    if not metadata.is_dir:
        del found["is_dir"]
    return {name: value for name, value in found.items() if value is not None}
