"""``calque presign``: a request for one object that anybody may send until it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from calque.cli.flags.quantities import parse_duration
from calque.cli.locations import Location, LocationArgument, Options
from calque.cli.output import JsonFlag, as_json, say

if TYPE_CHECKING:
    from calque.operator.presign import PresignedVerb

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def presign(
    uri: LocationArgument,
    verb: Annotated[
        str, typer.Option("--for", metavar="VERB", help="read, stat, write or delete.")
    ] = "read",
    expires: Annotated[
        str, typer.Option("--expires", metavar="TIME", help="How long it is good for: 15m, 7d.")
    ] = "1h",
    option: Options = None,
    json: JsonFlag = False,
) -> None:
    """Sign a request for one object and print its URL; nothing is sent.

    Whoever has the URL may use it until it ends, without credentials: treat it as a secret.

    Examples:

    - `calque presign s3://landing/a.csv` lets somebody read it for an hour

    - `calque presign s3://landing/b.csv --for write --expires 15m` lets somebody put it there
    """
    location = Location.of(uri, option).file()
    asked: PresignedVerb = verb  # type: ignore[assignment]  # the operator says which there are
    signed = location.operator.presign(asked, location.path, expires=parse_duration(expires))
    if json:
        as_json({"method": signed.method, "url": signed.url, "headers": dict(signed.headers)})
        return
    print(signed.url)
    for name, value in signed.headers.items():
        say(f"send it by {signed.method} with the header {name}: {value}")
