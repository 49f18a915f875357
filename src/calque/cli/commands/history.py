"""``calque history``: the loads of a table."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from calque.cli.flags.settings_flags import Config, LedgerUrl, TableArgument
from calque.cli.output import JsonFlag, as_json, seconds, size, table

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
    from calque.loader.look.table_history import loads_of_table

    settings = load_settings(config, flags={"ledger.url": ledger})
    found = loads_of_table(name, settings, limit=limit)
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
