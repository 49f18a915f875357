"""``calque preview``: what a load would read of a stage, before anything is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from calque.cli.flags.format_flags import (
    Delimiter,
    Encoding,
    Files,
    Format,
    Header,
    Option,
    Pattern,
    Quote,
    SchemaText,
    StageArgument,
    read_format,
    read_value,
)
from calque.cli.flags.named_in_errors import name_flags
from calque.cli.flags.settings_flags import Config, RowCount
from calque.cli.output import JsonFlag, as_json, record, say, size, table

if TYPE_CHECKING:
    from calque.loader.look.stage_preview import StagePreview

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def preview(
    stage: StageArgument,
    rows: RowCount = 10,
    format: Format = None,
    option: Option = None,
    header: Header = None,
    delimiter: Delimiter = None,
    quote: Quote = None,
    encoding: Encoding = None,
    files: Files = None,
    pattern: Pattern = None,
    schema: SchemaText = None,
    config: Config = None,
    json: JsonFlag = False,
) -> None:
    """Show what a load would read: files, dialect, columns with their types, first rows.

    Nothing is written: no table, no ledger. The flags that say how files are read are those of
    `calque load`, and mean the same there.

    Examples:

    - `calque preview landing/`

    - `calque preview 's3://landing/sales/*.csv' --no-header --rows 3`

    - `calque preview @landing --json`
    """
    from calque.config import load_settings
    from calque.loader.look.stage_preview import preview_stage
    from calque.loader.request.request import LoadRequest
    from calque.loader.request.schema_text import schema_of_text

    with name_flags():
        said = read_format(
            format, option, header=header, delimiter=delimiter, quote=quote, encoding=encoding
        )
        request = LoadRequest(
            stage=stage,
            into="",
            format=said.format,
            said=said.said,
            format_is_implied=said.is_implied,
            files=tuple(files or ()),
            pattern=pattern,
            schema=None if schema is None else read_value("--schema", schema_of_text, schema),
        )
        seen = preview_stage(request, load_settings(config), rows)
    if json:
        as_json(seen.to_json())
    else:
        _show(seen)


def _show(seen: StagePreview) -> None:
    from calque.loader.look.rows import cells_of
    from calque.loader.request.type_names import text_of_type
    from calque.values import count_of

    more = "" if seen.is_all else " and more"
    record(
        {
            "stage": seen.stage,
            "files": f"{count_of(seen.files, 'file')}{more}, {size(seen.bytes)}",
            "read as": seen.reading,
        }
    )
    print()
    table(("column", "type"), ((one.name, text_of_type(one.type)) for one in seen.schema))
    if seen.rows.num_rows:
        print()
        table(seen.schema.names, cells_of(seen.rows))
    if seen.refused:
        say(seen.notes[-1])
    if seen.ignored:
        say(f"{count_of(seen.ignored, 'file')} passed over: hidden, or still being written")
