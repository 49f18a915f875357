"""``calque sweep``: what killed copies left, found and removed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from calque.cli.flags.quantities import parse_duration
from calque.cli.locations import Location, LocationArgument, Options
from calque.cli.output import PARTLY, JsonFlag, as_json, say, size, table
from calque.errors import CalqueError
from calque.values import printable

if TYPE_CHECKING:
    from calque.operator import Leftover

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@dataclass(frozen=True, slots=True)
class Swept:
    """A leftover and what became of it: ``found`` (dry run), ``removed`` or ``failed``."""

    leftover: Leftover
    outcome: str
    error: str | None = None


@app.command()
def sweep(
    uri: LocationArgument,
    older_than: Annotated[
        str,
        typer.Option(metavar="TIME", help="Leave alone what is younger: it may still be resumed."),
    ] = "1d",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would go.")] = False,
    option: Options = None,
    json: JsonFlag = False,
) -> None:
    """Remove what killed copies left: temporary files, multipart uploads, uncommitted blocks.

    Only calque's own leftovers are touched, known by their marker, and no file that a living
    process holds.

    Examples:

    - `calque sweep s3://landing/ --dry-run` shows what is older than a day

    - `calque sweep ./warehouse --older-than 0s` removes every abandoned temporary file
    """
    location = Location.of(uri, option)
    before = datetime.now(UTC) - parse_duration(older_than)
    swept: list[Swept] = []
    failure: CalqueError | None = None
    try:
        for found in _old(location, before):
            swept.append(_sweep(location, found, dry_run))  # noqa: PERF401 - kept when it breaks off
    except CalqueError as error:
        if not swept:
            raise
        failure = error
    if json:
        as_json([_plain(one) for one in swept])
    else:
        _show(swept, dry_run)
    if failure is not None:
        say(f"error: not all of it could be looked at: {failure}")
    if failure is not None or any(one.error for one in swept):
        raise typer.Exit(PARTLY)


def _old(location: Location, before: datetime) -> Iterator[Leftover]:
    """Those of which it is known that they are old enough."""
    for found in location.operator.leftovers(location.prefix):
        if found.started is not None and found.started <= before:
            yield found


def _sweep(location: Location, found: Leftover, dry_run: bool) -> Swept:
    if dry_run:
        return Swept(found, "found")
    try:
        location.operator.remove_leftover(found)
    except CalqueError as error:
        return Swept(found, "failed", str(error))
    return Swept(found, "removed")


def _plain(one: Swept) -> dict[str, object]:
    found = one.leftover
    return {
        "location": found.location,
        "kind": found.kind,
        "id": found.id,
        "started": found.started,
        "size": found.size,
        "outcome": one.outcome,
        "error": one.error,
    }


def _show(swept: list[Swept], dry_run: bool) -> None:
    if swept:
        table(
            ("outcome", "kind", "started", "size", "location"),
            [
                (
                    one.outcome,
                    one.leftover.kind,
                    one.leftover.started,
                    "" if one.leftover.size is None else size(one.leftover.size),
                    printable(one.leftover.location),
                )
                for one in swept
            ],
        )
    for one in swept:
        if one.error:
            say(f"error: {one.error}")
    gone = sum(one.outcome == "removed" for one in swept)
    said = f"{len(swept)} leftovers found, none removed" if dry_run else f"{gone} leftovers removed"
    say(said)
