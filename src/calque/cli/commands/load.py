"""``calque load``: the files of a stage into a table, each exactly once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

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
from calque.cli.flags.metrics_flags import MetricsWanted, sheet_of_metrics
from calque.cli.flags.named_in_errors import name_flags
from calque.cli.flags.quantities import parse_duration, parse_size
from calque.cli.flags.settings_flags import Config, LedgerUrl, Spark
from calque.cli.flags.shared_flags import with_sheet
from calque.cli.load_output import (
    Quiet,
    ShowSkipped,
    finish,
    finish_aborted,
    stop_by_sigterm,
)
from calque.cli.output import JsonFlag, say
from calque.errors import InvalidInput, LoadAborted, NotFound, StatementInvalid

if TYPE_CHECKING:
    from pyarrow import Schema

    from calque.cli.load_run import Run
    from calque.loader.model.plan import MetadataColumn
    from calque.loader.request.request import LoadRequest

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
@with_sheet(sheet_of_metrics)
def load(
    stage: StageArgument,
    into: Annotated[
        str,
        typer.Option("--into", metavar="TABLE", help="A name, a path, or iceberg:PATH."),
    ],
    metrics: MetricsWanted,
    format: Format = None,
    option: Option = None,
    header: Header = None,
    delimiter: Delimiter = None,
    quote: Quote = None,
    encoding: Encoding = None,
    files: Files = None,
    pattern: Pattern = None,
    errors: Annotated[
        str,
        typer.Option(
            "--on-error", help="abort, abort_N, continue, skip_file, skip_file_N, skip_file_N%."
        ),
    ] = "abort",
    on_changed: Annotated[
        str, typer.Option("--on-changed", help="Files changed since: reload, skip, error, replace.")
    ] = "reload",
    force: Annotated[bool, typer.Option("--force", help="Load what is loaded already.")] = False,
    purge: Annotated[bool, typer.Option("--purge", help="Remove files once loaded.")] = False,
    archive: Annotated[
        str | None,
        typer.Option("--archive", metavar="LOCATION", help="Move files there once loaded."),
    ] = None,
    max_files: Annotated[int | None, typer.Option("--max-files", help="At most this many.")] = None,
    size_limit: Annotated[
        str | None, typer.Option("--size-limit", metavar="SIZE", help="Stop after this much.")
    ] = None,
    match_by: Annotated[
        str | None,
        typer.Option("--match-by", help="Columns: case_sensitive, case_insensitive or none."),
    ] = None,
    columns: Annotated[
        str | None, typer.Option("--columns", metavar="A,B", help="The columns that files fill.")
    ] = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option("--metadata", metavar="COLUMN=KIND", help="Such as source=file."),
    ] = None,
    schema: SchemaText = None,
    partition_by: Annotated[
        str | None, typer.Option("--partition-by", metavar="A,B", help="Of a table to be made.")
    ] = None,
    evolve: Annotated[bool, typer.Option("--evolve", help="Add columns the files bring.")] = False,
    rescue: Annotated[
        str | None, typer.Option("--rescue", metavar="COLUMN", help="Where misfits go as JSON.")
    ] = None,
    uncertain: Annotated[
        bool, typer.Option("--load-uncertain", help="Load files older than the ledger's memory.")
    ] = False,
    validate: Annotated[
        str | None, typer.Option("--validate", help="return_errors or return_N_rows; no load.")
    ] = None,
    failed_only: Annotated[bool, typer.Option("--failed-only", help="Show only failures.")] = False,
    label: Annotated[
        str | None, typer.Option("--label", help="Makes the statement idempotent as a whole.")
    ] = None,
    min_age: Annotated[
        str, typer.Option("--min-age", metavar="TIME", help="Leave younger files: 30s, 5m.")
    ] = "0s",
    require_files: Annotated[
        bool, typer.Option("--require-files", help="No file at all is an error.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan only.")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Keep on loading what arrives, until stopped.")
    ] = False,
    every: Annotated[
        str, typer.Option("--every", metavar="TIME", help="How often a watch looks.")
    ] = "10s",
    spark: Spark = None,
    ledger: LedgerUrl = None,
    config: Config = None,
    show_all: ShowSkipped = False,
    quiet: Quiet = False,
    json: JsonFlag = False,
) -> None:
    """Load the files of a stage into a table, each exactly once.

    Run it twice, in two places, kill it: every file counts once. A file that changed is loaded
    again (see --on-changed); one that was only touched is not.

    Examples:

    - `calque load landing/ --into lake/sales` makes the Delta table if it is not there

    - `calque load s3://landing/sales/ --into warehouse.sales --on-error skip_file --purge`

    - `calque load 'in/*.csv.gz' --into iceberg:./lake/shop.sales -o skip_header=1 --format csv`

    - `calque load @landing --into warehouse.sales --watch --every 30s`
    """
    from calque.cli.load_run import Run
    from calque.config import load_settings
    from calque.loader.loader import Loader
    from calque.loader.request.option_values import column_match, on_error, validation
    from calque.loader.request.request import LoadRequest

    with name_flags():
        said = read_format(
            format, option, header=header, delimiter=delimiter, quote=quote, encoding=encoding
        )
        try:
            request = LoadRequest(
                stage=stage,
                into=into,
                format=said.format,
                said=said.said,
                format_is_implied=said.is_implied,
                files=tuple(files or ()),
                pattern=pattern,
                force=force,
                purge=purge,
                archive=archive,
                on_error=read_value("--on-error", on_error, errors),
                on_changed=on_changed,  # type: ignore[arg-type]
                size_limit=None
                if size_limit is None
                else read_value("--size-limit", parse_size, size_limit),
                max_files=max_files,
                match_by=None
                if match_by is None
                else read_value("--match-by", column_match, match_by),
                columns=_names(columns),
                metadata_columns=_metadata(metadata or []),
                schema=None if schema is None else _schema(schema),
                partition_by=_names(partition_by),
                evolve=evolve,
                rescue_column=rescue,
                load_uncertain_files=uncertain,
                validation=None
                if validate is None
                else read_value("--validate", validation, validate),
                return_failed_only=failed_only,
                label=label,
                min_age=read_value("--min-age", parse_duration, min_age).total_seconds(),
                dry_run=dry_run,
            )
        except StatementInvalid:
            raise
        except InvalidInput as error:
            raise StatementInvalid(error.message, hint=error.hint) from error
        settings = load_settings(config, flags={"ledger.url": ledger})
        seconds = read_value("--every", parse_duration, every).total_seconds()
        open_loader = partial(Loader, settings=settings, spark=spark)
        stop_by_sigterm()
        with metrics.count_run("load") as counted:
            if watch:
                from calque.cli.watch import Watch, open_patiently

                with open_patiently(open_loader, seconds) as loader:
                    Watch(loader, request, seconds, json=json).run(Run(loader, quiet, counted))
            with open_loader() as loader:
                run = Run(loader, quiet, counted)
                _once(run, request, quiet, json, require_files, show_all)


def _once(
    run: Run,
    request: LoadRequest,
    quiet: bool,
    json: bool,
    require_files: bool,
    show_all: bool,
) -> None:
    try:
        report = run(request)
    except LoadAborted as error:
        finish_aborted(error, json=json, quiet=quiet)
    else:
        if not report.matched and not report.replayed:
            _warn_of_nothing(request, require_files)
        finish(report, json=json, skipped=show_all, quiet=quiet)


def _warn_of_nothing(request: LoadRequest, require_files: bool) -> None:
    told = f"no file matches {request.stage}"
    if request.pattern is not None:
        told += f" with --pattern {request.pattern}"
    if require_files:
        raise NotFound(told, hint="--require-files asks for at least one.")
    say(f"warning: {told}")


def _schema(text: str) -> Schema:
    from calque.loader.request.schema_text import schema_of_text

    return read_value("--schema", schema_of_text, text)


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",")) if text else ()


def _metadata(texts: list[str]) -> tuple[MetadataColumn, ...]:
    from calque.loader.model.plan import MetadataColumn
    from calque.loader.request.option_values import metadata_kind

    found = []
    for text in texts:
        column, equals, kind = text.partition("=")
        if not equals:
            raise StatementInvalid(f"a metadata column is spelled COLUMN=KIND, not {text!r}")
        found.append(MetadataColumn(column, read_value("--metadata", metadata_kind, kind)))
    return tuple(found)
