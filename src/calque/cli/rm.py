"""``calque rm``: objects deleted."""

from __future__ import annotations

from typing import Annotated

import typer

from calque.cli.locations import Location, Options
from calque.cli.output import PARTLY, JsonFlag, as_json, say
from calque.errors import CalqueError, NotFound, Unsupported

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def rm(
    locations: Annotated[
        list[str], typer.Argument(metavar="LOCATION...", help="URIs or local paths.")
    ],
    force: Annotated[
        bool, typer.Option("--force", "-f", help="What is not there is no error.")
    ] = False,
    if_match: Annotated[
        str | None, typer.Option(metavar="ETAG", help="Delete only if it is still this one.")
    ] = None,
    recursive: Annotated[bool, typer.Option("--recursive", "-r", hidden=True)] = False,
    option: Options = None,
    json: JsonFlag = False,
) -> None:
    """Delete objects. Each is tried; exit code 3 when some could not be deleted.

    Examples:

    - `calque rm s3://landing/a.csv s3://landing/b.csv`

    - `calque rm -f maybe.csv` does not mind when it is gone already
    """
    if recursive:
        raise Unsupported("rm deletes single objects; trees cannot be deleted by it")
    deleted: list[str] = []
    failed: list[tuple[str, CalqueError]] = []
    for uri in locations:
        try:
            _delete(Location.of(uri, option).file(), force, if_match)
            deleted.append(uri)
        except CalqueError as error:
            failed.append((uri, error))
    if len(locations) == 1 and failed:
        raise failed[0][1]
    if json:
        as_json({"deleted": deleted, "failed": {name: str(reason) for name, reason in failed}})
    for _, reason in failed:
        say(f"error: {reason}")
    if failed:
        raise typer.Exit(PARTLY)


def _delete(location: Location, force: bool, if_match: str | None) -> None:
    if not force and not location.operator.exists(location.path):
        raise NotFound(f"{location.uri} does not exist", hint="With --force this is no error.")
    location.operator.delete(location.path, if_match=if_match)
