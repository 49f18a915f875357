"""``calque sql``: a COPY INTO or TRUNCATE TABLE as text."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from calque.cli.flags.settings_flags import Config, LedgerUrl, Spark
from calque.cli.load_output import (
    Quiet,
    ShowSkipped,
    finish,
    finish_aborted,
    stop_by_sigterm,
)
from calque.cli.output import JsonFlag
from calque.errors import LoadAborted

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def sql(
    statement: Annotated[
        str, typer.Argument(metavar="STATEMENT", help="The statement; - reads standard input.")
    ],
    spark: Spark = None,
    ledger: LedgerUrl = None,
    config: Config = None,
    show_all: ShowSkipped = False,
    quiet: Quiet = False,
    json: JsonFlag = False,
) -> None:
    """Run a COPY INTO in the spelling of Snowflake, Databend or Databricks.

    Examples:

    - `calque sql "COPY INTO warehouse.sales FROM @landing FILE_FORMAT = (TYPE = CSV SKIP_HEADER = 1)"`

    - ``calque sql "COPY INTO delta.`lake/sales` FROM 'landing/' FILEFORMAT = PARQUET"``

    - `calque sql "TRUNCATE TABLE warehouse.sales"` empties it and forgets what was loaded
    """  # noqa: E501 - an example stands on one line
    from calque.config import load_settings
    from calque.loader.api import sql as run_sql
    from calque.loader.progress_bar import load_bar

    text = sys.stdin.read() if statement == "-" else statement
    settings = load_settings(config, flags={"ledger.url": ledger})
    stop_by_sigterm()
    try:
        with load_bar(show=not quiet) as update:
            report = run_sql(text, spark=spark, settings=settings, progress=update)
    except LoadAborted as error:
        finish_aborted(error, json=json, quiet=quiet)
    else:
        finish(report, json=json, skipped=show_all, quiet=quiet)
