"""``calque show``: a table as it is now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from calque.cli.flags.settings_flags import Config, RowCount, TableArgument
from calque.cli.output import JsonFlag, as_json, record, say, table

if TYPE_CHECKING:
    from calque.loader.look.table_summary import TableSummary

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def show(
    name: TableArgument,
    rows: RowCount = 10,
    config: Config = None,
    json: JsonFlag = False,
) -> None:
    """Show a table: format, place, version, number of rows, columns, and some of its rows.

    Nothing is written. A table that calque would not load is shown too, and it says why.

    Examples:

    - `calque show warehouse.sales`

    - `calque show iceberg:lake/shop.orders --rows 3`

    - `calque show lake/sales --rows 0 --json`
    """
    from calque.config import load_settings
    from calque.loader.look.table_summary import summarise_table

    seen = summarise_table(name, load_settings(config), rows)
    if json:
        as_json(seen.to_json())
    else:
        _show(seen)


def _show(seen: TableSummary) -> None:
    from calque.loader.look.rows import cells_of
    from calque.loader.request.type_names import text_of_type

    told = {
        "table": seen.name,
        "format": seen.kind,
        "location": seen.location,
        "version": seen.version,
        "rows": "unknown" if seen.rows is None else f"{seen.rows:,}",
    }
    if seen.partition_by:
        told["partitioned by"] = ", ".join(seen.partition_by)
    record(told)
    print()
    table(
        ("column", "type", "null"),
        (
            (one.name, text_of_type(one.type), "" if one.nullable else "NOT NULL")
            for one in seen.schema
        ),
    )
    if seen.first_rows is not None and seen.first_rows.num_rows:
        print()
        table(seen.first_rows.column_names, cells_of(seen.first_rows))
    for note in seen.notes:
        say(f"note: {note}")
