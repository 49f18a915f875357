"""``calque ls``: what lies somewhere."""

from __future__ import annotations

import json as jsons
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Annotated

import typer

from calque.cli.locations import Location, LocationArgument, Options
from calque.cli.output import JsonFlag, moment, printable, size
from calque.errors import NotFound
from calque.values import Metadata

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def ls(
    uri: LocationArgument = ".",
    recursive: Annotated[
        bool, typer.Option("--recursive", "-r", help="All objects below, not one level.")
    ] = False,
    long: Annotated[bool, typer.Option("--long", "-l", help="Size and time too.")] = False,
    start_after: Annotated[
        str, typer.Option(metavar="NAME", help="Begin after this name (as it is shown).")
    ] = "",
    limit: Annotated[int | None, typer.Option(min=1, help="Show no more than this many.")] = None,
    option: Options = None,
    json: JsonFlag = False,
) -> None:
    """List objects in key order, as they are found: the first line does not wait for the last.

    Examples:

    - `calque ls s3://landing/sales/` shows one level; directories end in /

    - `calque ls -rl ./warehouse` shows every file below with size and time
    """
    location = Location.of(uri, option)
    base = location.prefix.rpartition("/")[0]
    base = f"{base}/" if base else ""
    entries = islice(_entries(location, base, start_after, recursive), limit)
    if json:
        _print_json(location, entries)
        return
    for entry in entries:
        print(_line(entry, entry.path[len(base) :], long))


def _entries(
    location: Location, base: str, start_after: str, recursive: bool
) -> Iterator[Metadata]:
    if location.is_local and location.path and not location.prefix.endswith("/"):
        yield location.operator.stat(location.path)
        return
    after = base + start_after if start_after else ""
    found = False
    for entry in location.operator.list(location.prefix, start_after=after, recursive=recursive):
        found = True
        yield entry
    if not found and location.prefix.endswith("/") and not start_after:
        _refuse_missing(location)


def _refuse_missing(location: Location) -> None:
    """An empty directory is fine, one that is not there is a mistyped name."""
    if location.is_local and not location.is_local_directory:
        raise NotFound(f"{location.uri} does not exist")


def _line(entry: Metadata, name: str, long: bool) -> str:
    if not long:
        return printable(name)
    when = "" if entry.last_modified is None else moment(entry.last_modified)
    return f"{'' if entry.is_dir else size(entry.size):>12}  {when:<20}  {printable(name)}"


def _print_json(location: Location, entries: Iterator[Metadata]) -> None:
    """One document, an entry a line, written as entries come."""
    # By hand, because a listing may be longer than memory.
    print("[", end="")
    for index, entry in enumerate(entries):
        shown = {
            "path": entry.path,
            "location": location.operator.location(entry.path),
            "is_dir": entry.is_dir,
            "size": None if entry.is_dir else entry.size,
            "etag": entry.etag,
            "last_modified": entry.last_modified and entry.last_modified.isoformat(),
        }
        sys.stdout.write((",\n" if index else "\n") + jsons.dumps(shown))
    print("\n]")
