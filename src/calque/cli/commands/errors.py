"""``calque errors``: the rows that a load rejected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from calque.cli.flags.settings_flags import Config, LedgerUrl
from calque.cli.output import JsonFlag, as_json, say, table
from calque.errors import CalqueError, NotFound

if TYPE_CHECKING:
    from calque.config import Settings
    from calque.ledger.database import Ledger
    from calque.ledger.history import LoadRow

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")

COLUMNS = (
    "file",
    "line",
    "record",
    "column",
    "character",
    "target_type",
    "value",
    "code",
    "message",
)


@app.command()
def errors(
    name: Annotated[
        str, typer.Argument(metavar="LOAD", help="The load's id or label; or a table.")
    ],
    ledger: LedgerUrl = None,
    config: Config = None,
    json: JsonFlag = False,
) -> None:
    """Show every rejected row of a load: file, line, column, character, value and why.

    Of a table, those of its last load that rejected any.

    Examples:

    - `calque errors 20261115T101316-e202ddb8`

    - `calque errors warehouse.sales`

    - `calque errors nightly-2026-11-15 --json` also gives the raw lines
    """
    from calque.config import load_settings
    from calque.ledger.configured import ledger_of
    from calque.ledger.history import errors_of
    from calque.values import count_of

    settings = load_settings(config, flags={"ledger.url": ledger})
    with ledger_of(settings) as opened:
        load = _find_load(opened, name, settings)
        found = list(errors_of(opened, load.load_id)) if load else []
    if json:
        as_json(found)
    if load is None:
        say(f"no load of {name} has rejected a row")
    elif load.load_id != name:
        say(f"load {load.load_id}")
    if load is not None and load.errors and not found and load.who is None:
        told = count_of(load.errors, "rejected row")
        say(f"{told}: which, only the ledger that ran the load knows; this one took it in later")
    if json:
        return
    table(COLUMNS, (tuple(one[name] for name in COLUMNS) for one in found))


def _find_load(ledger: Ledger, name: str, settings: Settings) -> LoadRow | None:
    """The load of that name; else the last with errors of the table of that name, if any."""
    from calque.ledger.history import find_load_by_name
    from calque.loader.look.table_history import loads_of_table

    try:
        return find_load_by_name(ledger, name)
    except NotFound as missing:
        try:
            found = loads_of_table(name, settings)
        except CalqueError:
            raise missing from None
    return next((one for one in found if one.errors), None)
