"""``calque ls``: what lies somewhere."""

from __future__ import annotations

import json as jsons
import os
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Annotated

import typer

from calque.cli.locations import Location, LocationArgument, Options, buckets_of, is_account
from calque.cli.output import JsonFlag, as_json, moment, size
from calque.errors import InvalidInput, NotFound
from calque.values import Metadata, printable

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
    versions: Annotated[
        bool, typer.Option("--versions", help="Every version, with its name, the newest first.")
    ] = False,
    option: Options = None,
    json: JsonFlag = False,
) -> None:
    """List objects in key order, as they are found: the first line does not wait for the last.

    Examples:

    - `calque ls s3://landing/sales/` shows one level; directories end in /

    - `calque ls -rl ./warehouse` shows every file below with size and time

    - `calque ls 's3://landing/**/*.csv'` shows what matches, at any depth

    - `calque ls s3://landing/a.csv --versions` shows what it was before

    - `calque ls s3://` shows buckets
    """
    if is_account(uri):
        _show_buckets(uri, option, limit, json=json)
        return
    location = Location.of(uri, option)
    if versions:
        if start_after or long:
            raise InvalidInput(
                "--versions goes with neither --start-after nor --long",
                hint="With --json it tells all that is known of each.",
            )
        _show_versions(
            location, islice(location.operator.list_versions(location.prefix), limit), json
        )
        return
    if (found := _split_glob(location)) is not None:
        _show(location, found[0], islice(_matching(location, *found, recursive), limit), long, json)
        return
    base = location.prefix.rpartition("/")[0]
    base = f"{base}/" if base else ""
    entries = islice(_entries(location, base, start_after, recursive), limit)
    _show(location, base, entries, long, json)


def _show(
    location: Location, base: str, entries: Iterator[Metadata], long: bool, json: bool
) -> None:
    if json:
        _print_json(location, entries)
        return
    for entry in entries:
        print(_line(entry, entry.path[len(base) :], long))


def _show_versions(location: Location, entries: Iterator[Metadata], json: bool) -> None:
    if json:
        _print_json(location, entries)
        return
    base = location.prefix.rpartition("/")[0]
    for entry in entries:
        name = entry.path[len(base) + 1 :] if base else entry.path
        print(f"{_line(entry, name, long=True)}  {entry.version or ''}")


def _show_buckets(uri: str, option: Sequence[str] | None, limit: int | None, *, json: bool) -> None:
    found = islice(buckets_of(uri, option), limit)
    if json:
        as_json(list(found))
        return
    for bucket in found:
        when = "" if bucket.created is None else f"{bucket.created:%Y-%m-%d %H:%M:%S}"
        print(f"{when:<19}  {printable(bucket.name)}")


def _split_glob(location: Location) -> tuple[str, str] | None:
    """A path with signs of a pattern, cut before the first name that has one."""
    path = location.path
    if location.is_local and os.path.lexists("/" + path):
        return None  # a file of just that name
    at = next((place for place, letter in enumerate(path) if letter in "*?[{"), None)
    if at is None:
        return None
    cut = path.rfind("/", 0, at) + 1
    return path[:cut], path[cut:]


def _matching(location: Location, base: str, pattern: str, recursive: bool) -> Iterator[Metadata]:
    from calque.transfer.request.filters import Filters, Rule

    rules = [Rule.include(f"/{pattern}"), Rule.exclude("**")]
    if recursive:
        rules.insert(1, Rule.include(f"/{pattern.rstrip('/')}/**"))
    filters = Filters(rules=tuple(rules))
    seen = False
    for prefix in filters.prefixes:
        for entry in location.operator.list(base + prefix):
            if filters.takes_path(entry.path[len(base) :]):
                seen = True
                yield entry
    if not seen:
        raise NotFound(f"nothing matches {location.uri}", hint="** crosses folders, * does not.")


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
            "version": entry.version,
            "last_modified": entry.last_modified and entry.last_modified.isoformat(),
        }
        sys.stdout.write((",\n" if index else "\n") + jsons.dumps(shown))
    print("\n]")
