"""``calque history``: the loads of a table."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from calque.cli.output import JsonFlag, as_json, seconds, size, table
from calque.cli.settings_flags import Config, LedgerUrl, TableArgument

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def history(
    name: TableArgument,
    limit: Annotated[int, typer.Option("--limit", help="At most this many, newest first.")] = 20,
    ledger: LedgerUrl = None,
    config: Config = None,
    json: JsonFlag = False,
) -> None:
    """Show the loads of a table: rows, errors, bytes, times, who, and the statement.

    Examples:

    - `calque history warehouse.sales`

    - `calque history lake/sales --limit 3 --json`
    """
    from calque.config import load_settings
    from calque.ledger.configured import ledger_of
    from calque.ledger.history import history as read_history
    from calque.loader.commit.tables import open_table

    settings = load_settings(config, flags={"ledger.url": ledger})
    lake = open_table(name, settings, must_exist=True)
    key = lake.key(lake.open())
    with ledger_of(settings) as opened:
        found = read_history(opened, key, limit=limit)
    if json:
        as_json([asdict(one) for one in found])
        return
    table(
        ("load", "state", "files", "rows", "errors", "bytes", "started", "seconds", "who", "what"),
        (
            (
                one.load_id,
                one.state,
                one.files,
                one.rows,
                one.errors,
                size(one.bytes),
                one.started_at,
                None if one.seconds is None else seconds(one.seconds),
                one.who,
                one.message or one.statement,
            )
            for one in found
        ),
    )
