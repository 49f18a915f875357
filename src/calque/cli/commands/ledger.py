"""``calque ledger``: look at what is remembered, forget, rebuild, expire."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from calque.cli.flags.settings_flags import Config, LedgerUrl, TableArgument
from calque.cli.output import JsonFlag, as_json, say, size, table
from calque.errors import NotFound

if TYPE_CHECKING:
    from calque.config import Settings
    from calque.ledger import Ledger, TableRow
    from calque.loader.commit.tables import Lake

app = typer.Typer(add_completion=False, rich_markup_mode="markdown", no_args_is_help=True)

SHOWN = ("location", "size", "etag", "last_modified", "load_id", "rows", "loaded_at", "expires_at")


@app.callback()
def ledger() -> None:
    """Look at what the ledger remembers of a table, forget, rebuild or expire it."""


@app.command()
def show(
    name: TableArgument,
    prefix: Annotated[str, typer.Option("--prefix", help="Only locations that begin so.")] = "",
    ledger: LedgerUrl = None,
    config: Config = None,
    json: JsonFlag = False,
) -> None:
    """Show the record of every loaded file: `calque ledger show warehouse.sales`."""
    from calque.config import load_settings
    from calque.ledger.configured import ledger_of
    from calque.ledger.history import records_of
    from calque.ledger.tables import find_words
    from calque.loader.commit.tables import open_table

    settings = load_settings(config, flags={"ledger.url": ledger})
    lake = open_table(name, settings, must_exist=True)
    with ledger_of(settings) as opened:
        key = lake.key(lake.open())
        records = records_of(opened, key, prefix=prefix)
        if json:
            as_json(list(records))
        else:
            database, called = find_words(opened, key)
            say(f"tenant {opened.tenant}, database {database}, table {called}")
            told = ({**one, "size": size(one["size"])} for one in records)
            table(SHOWN, (tuple(one[column] for column in SHOWN) for one in told))


@app.command()
def forget(
    name: TableArgument,
    locations: Annotated[
        list[str] | None,
        typer.Argument(metavar="LOCATION", help="Full locations, as `show` prints them."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Forget every file of the table.")
    ] = False,
    ledger: LedgerUrl = None,
    config: Config = None,
    json: JsonFlag = False,
) -> None:
    """Forget files, so that they load again: `calque ledger forget lake/sales s3://in/a.csv`."""
    from calque.config import load_settings
    from calque.ledger.configured import ledger_of
    from calque.ledger.files import forget as forget_records
    from calque.values import count_of

    if bool(locations) == everything:
        raise typer.BadParameter("name locations, or say --all")
    settings = load_settings(config, flags={"ledger.url": ledger})
    with ledger_of(settings) as opened:
        _, row = _find_known_table(name, settings, opened)
        count = forget_records(opened, row, None if everything else locations)
    if json:
        as_json({"forgotten": count})
    else:
        say(f"{count_of(count, 'file')} forgotten")


@app.command()
def rebuild(
    name: TableArgument,
    ledger: LedgerUrl = None,
    config: Config = None,
    json: JsonFlag = False,
) -> None:
    """Take in what the table itself tells of its loads: `calque ledger rebuild lake/sales`."""
    from calque.config import load_settings
    from calque.ledger.configured import ledger_of
    from calque.ledger.tables import register_table
    from calque.loader.commit.rebuild import rebuild as rebuild_records
    from calque.loader.commit.tables import open_table
    from calque.values import count_of

    settings = load_settings(config, flags={"ledger.url": ledger})
    lake = open_table(name, settings, must_exist=True)
    snapshot = lake.open()
    with ledger_of(settings) as opened:
        row = register_table(opened, lake.key(snapshot))
        adopted = rebuild_records(opened, lake, row, snapshot)
    if json:
        as_json({"loads": adopted})
    else:
        say(f"{count_of(len(adopted), 'load')} taken in")


@app.command()
def expire(ledger: LedgerUrl = None, config: Config = None, json: JsonFlag = False) -> None:
    """Drop what is older than records live, and end dead loads: `calque ledger expire`.

    Records, loads and the sidecars beside tables go when their time is over. Loads that died are
    finished or aborted; those whose table was dropped, or made again, are let go.
    """
    from calque.config import load_settings
    from calque.ledger.configured import ledger_of
    from calque.loader.after.expire import expire as expire_all

    settings = load_settings(config, flags={"ledger.url": ledger})
    with ledger_of(settings) as opened:
        swept = expire_all(settings, opened)
    if json:
        as_json(asdict(swept))
        return
    for told in (*swept.ended, *swept.troubles):
        say(told)
    say(f"{swept.files} records, {swept.loads} loads and {swept.sidecars} sidecars dropped")


def _find_known_table(name: str, settings: Settings, ledger: Ledger) -> tuple[Lake, TableRow]:
    from calque.ledger.tables import find_table
    from calque.loader.commit.tables import open_table

    lake = open_table(name, settings, must_exist=True)
    row = find_table(ledger, lake.key(lake.open()))
    if row is None:
        raise NotFound(f"the ledger at {ledger.where} knows nothing of table {name}")
    return lake, row
