"""``calque tables``: the tables there are."""

from __future__ import annotations

from dataclasses import asdict

import typer

from calque.cli.flags.settings_flags import Config, LedgerUrl
from calque.cli.output import PARTLY, JsonFlag, as_json, say, table

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def tables(ledger: LedgerUrl = None, config: Config = None, json: JsonFlag = False) -> None:
    """List the tables of calque.toml, of its catalogs, and those that were loaded before.

    Exit code 3 if a catalog could not be asked.

    Examples:

    - `calque tables`

    - `calque tables --config prod.toml --json`
    """
    from calque.config import load_settings
    from calque.ledger.configured import existing_ledger_of
    from calque.loader.look.known_tables import list_tables

    settings = load_settings(config, flags={"ledger.url": ledger})
    opened = existing_ledger_of(settings)
    try:
        found = list_tables(settings, opened)
    finally:
        if opened is not None:
            opened.close()
    if json:
        as_json({"tables": [asdict(one) for one in found.tables], "troubles": found.troubles})
    elif found.tables:
        columns = ("table", "format", "location", "known from", "loads", "rows loaded", "last load")
        table(columns, (tuple(asdict(one).values()) for one in found.tables))
    elif not found.troubles:
        say("no table is known: describe one in calque.toml, or load one")
    for trouble in found.troubles:
        say(trouble)
    if found.troubles:
        raise typer.Exit(PARTLY)
