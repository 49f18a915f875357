"""``calque du``: how much lies somewhere."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Annotated

import typer

from calque.cli.flags.shared_flags import with_sheet
from calque.cli.flags.tree_flags import sheet_of_filters
from calque.cli.locations import Location, Options
from calque.cli.output import JsonFlag, as_json, size
from calque.errors import NotFound
from calque.transfer.request.filters import Filters
from calque.values import printable

if TYPE_CHECKING:
    from calque.transfer.model import Count

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
@with_sheet(sheet_of_filters)
def du(
    filters: Filters,
    locations: Annotated[
        list[str] | None,
        typer.Argument(metavar="LOCATION...", help="URIs or local paths.", show_default="."),
    ] = None,
    depth: Annotated[
        int, typer.Option("--depth", "-d", min=0, help="Folders below each that get a line.")
    ] = 1,
    in_bytes: Annotated[
        bool, typer.Option("--bytes", "-b", help="Exact numbers of bytes.")
    ] = False,
    option: Options = None,
    json: JsonFlag = False,
) -> None:
    """Count objects and bytes, folder by folder, and in all.

    Examples:

    - `calque du s3://landing/sales/` shows each folder of one level, and the sum

    - `calque du -d 0 s3://a/ s3://b/` shows a sum for each

    - `calque du . --exclude .git/ --newer-than 7d` counts what filters take
    """
    told = []
    for uri in locations or ["."]:
        location = Location.of(uri, option)
        for folder, count in _measure(location, depth, filters):
            if json:
                told.append({"location": folder, "objects": count.objects, "bytes": count.bytes})
                continue
            shown = str(count.bytes) if in_bytes else size(count.bytes)
            print(f"{shown:>12}  {count.objects:>10}  {printable(folder)}")
    if json:
        as_json(told)


def _measure(location: Location, depth: int, filters: Filters) -> list[tuple[str, Count]]:
    """Folders with what lies anywhere below them, by name; the whole comes last."""
    from calque.transfer.model import Count

    base = location.prefix
    if base and not base.endswith("/") and not location.is_local:
        base += "/"
    folders: dict[str, Count] = defaultdict(Count)
    whole, seen = Count(), False
    for prefix in filters.prefixes:
        for entry in location.operator.list(base + prefix):
            seen = True
            path = entry.path[len(base) :]
            if entry.is_dir or not filters.takes(path, entry):
                continue
            whole.add(entry.size)
            names = path.split("/")[:-1][:depth]
            for level in range(1, len(names) + 1):
                folders["/".join(names[:level]) + "/"].add(entry.size)
    if not seen:
        found = location.operator.stat(location.path)  # one object, or NotFound
        if found.is_dir and not location.is_local_directory and location.path:
            raise NotFound(f"{location.uri} does not exist")
        if not found.is_dir:
            whole.add(found.size)
    shown = location.operator.location
    listed = [(shown(base + folder), count) for folder, count in sorted(folders.items())]
    return [*listed, (location.uri, whole)]
