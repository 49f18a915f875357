"""``calque errors``: the rows that a load rejected."""

from __future__ import annotations

from typing import Annotated

import typer

from calque.cli.output import JsonFlag, as_json, table
from calque.cli.settings_flags import Config, LedgerUrl

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
    load_id: Annotated[str, typer.Argument(metavar="LOAD", help="The load's id or label.")],
    ledger: LedgerUrl = None,
    config: Config = None,
    json: JsonFlag = False,
) -> None:
    """Show every rejected row of a load: file, line, column, character, value and why.

    Examples:

    - `calque errors 20261115T101316-e202ddb8`

    - `calque errors nightly-2026-11-15 --json` also gives the raw lines
    """
    from calque.config import load_settings
    from calque.ledger.configured import ledger_of
    from calque.ledger.history import errors_of, find_load_by_name

    settings = load_settings(config, flags={"ledger.url": ledger})
    with ledger_of(settings) as opened:
        found = list(errors_of(opened, find_load_by_name(opened, load_id).load_id))
    if json:
        as_json(found)
    else:
        table(COLUMNS, (tuple(one[name] for name in COLUMNS) for one in found))
