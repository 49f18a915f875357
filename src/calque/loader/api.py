"""``calque.load`` and ``calque.sql``: a statement from Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from calque.config import Settings, load_settings, state_folder
from calque.errors import StatementInvalid
from calque.ledger import Ledger, open_ledger
from calque.ledger.identity import DAY
from calque.loader.commit.truncate import truncate_table
from calque.loader.model.error_policy import ErrorPolicy
from calque.loader.model.file_formats import FormatOptions
from calque.loader.model.plan import Engine, MetadataColumn
from calque.loader.plan.failed_files import FailedFiles
from calque.loader.report import Report
from calque.loader.request.options import build_format, metadata_kind, said_of_format
from calque.loader.request.options import match as match_of
from calque.loader.request.options import on_error as on_error_of
from calque.loader.request.parse import parse, parse_truncate
from calque.loader.request.request import LoadRequest, OnChanged, Validation
from calque.loader.request.schema_text import schema_of_text
from calque.loader.run.engines import choose_engine
from calque.loader.run_request import LoadProgress, Statement
from calque.spark.session import SparkOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OnProgress = Callable[[LoadProgress], None]


class Loader:
    """Runs statements over one ledger and one engine: open once, use often, close."""

    def __init__(
        self,
        *,
        settings: Settings | None = None,
        spark: SparkSession | SparkOptions | str | None = None,
    ) -> None:
        self.settings = settings or load_settings()
        self.ledger = ledger_of(self.settings)
        self._spark = spark if spark is not None else self.settings.spark.master
        self._engines: dict[str, Engine] = {}

    def run(
        self,
        request: LoadRequest,
        progress: OnProgress | None = None,
        failed: FailedFiles | None = None,
    ) -> Report:
        """One statement, to its end; files that ``failed`` before are left alone."""
        statement = Statement(request, self.settings, self.ledger, self._engine, progress, failed)
        return statement.run()

    def truncate(self, table: str) -> Report:
        """Empty a table and forget what was loaded into it, in one commit."""
        return truncate_table(table, self.settings, self.ledger)

    def _engine(self, size: int, transforms: bool) -> Engine:
        told = self.settings.spark
        chosen = choose_engine(
            spark=self._spark,
            bytes=size,
            transforms=transforms,
            configured=SparkOptions(memory=told.memory, settings=told.settings),
        )
        return self._engines.setdefault(chosen.name, chosen)

    def let_go_of_engines(self) -> None:
        """Close them; the next statement starts its own."""
        for engine in self._engines.values():
            engine.close()
        self._engines.clear()

    def close(self) -> None:
        self.let_go_of_engines()
        self.ledger.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def ledger_of(settings: Settings) -> Ledger:
    """The ledger of the configuration: a URL, else a SQLite file in the user's state folder."""
    url = settings.ledger.url
    where = url.reveal() if url is not None else str(state_folder() / "ledger.db")
    return open_ledger(where, tenant=settings.tenant, life=settings.ledger.expire_days * DAY)


def load(
    stage: str,
    into: str,
    *,
    format: str | FormatOptions | None = None,
    format_options: Mapping[str, Any] | None = None,
    files: Sequence[str] = (),
    pattern: str | None = None,
    force: bool = False,
    purge: bool = False,
    archive: str | None = None,
    on_error: str | ErrorPolicy = "abort_statement",
    on_changed: OnChanged = "reload",
    size_limit: int | None = None,
    max_files: int | None = None,
    match_by_column_name: str | None = None,
    columns: Sequence[str] = (),
    metadata_columns: Mapping[str, str] | None = None,
    schema: pa.Schema | str | None = None,
    partition_by: Sequence[str] = (),
    create: bool = True,
    evolve: bool = False,
    evolve_limit: int = 100,
    rescue_column: str | None = None,
    load_uncertain_files: bool = False,
    validate: bool | int = False,
    return_failed_only: bool = False,
    label: str | None = None,
    min_age: float = 0.0,
    lease_seconds: float = 60.0,
    dry_run: bool = False,
    spark: SparkSession | SparkOptions | str | None = None,
    settings: Settings | None = None,
    progress: OnProgress | None = None,
) -> Report:
    """Load the files of a stage into a table, each exactly once.

    Run it as often as you like, in as many places as you like, killed at any step: a file that is
    in the table is not loaded again while it stays the same. Raises ``LoadAborted`` (with the
    ``report``) when ``on_error`` gives the statement up; then nothing of it was loaded.
    """
    request = LoadRequest(
        stage=stage,
        into=into,
        format=_format(format, format_options),
        said=said_of_format(format, format_options or {}) if isinstance(format, str) else None,
        files=tuple(files),
        pattern=pattern,
        force=force,
        purge=purge,
        archive=archive,
        on_error=_policy(on_error),
        on_changed=on_changed,
        size_limit=size_limit,
        max_files=max_files,
        match=None if match_by_column_name is None else match_of(match_by_column_name),
        columns=tuple(columns),
        metadata_columns=_metadata(metadata_columns or {}),
        schema=schema_of_text(schema) if isinstance(schema, str) else schema,
        partition_by=tuple(partition_by),
        create=create,
        evolve=evolve,
        evolve_limit=evolve_limit,
        rescue_column=rescue_column,
        load_uncertain_files=load_uncertain_files,
        validation=_validation(validate),
        return_failed_only=return_failed_only,
        label=label,
        min_age=min_age,
        lease_seconds=lease_seconds,
        dry_run=dry_run,
    )
    with Loader(settings=settings, spark=spark) as loader:
        return loader.run(request, progress)


def sql(
    text: str,
    *,
    spark: SparkSession | SparkOptions | str | None = None,
    settings: Settings | None = None,
    progress: OnProgress | None = None,
) -> Report:
    """Run a ``COPY INTO`` (Snowflake, Databend or Databricks spelling) or a ``TRUNCATE TABLE``."""
    settings = settings or load_settings()
    table = parse_truncate(text)
    request = None if table is not None else parse(text, settings.formats)
    with Loader(settings=settings, spark=spark) as loader:
        if request is None:
            assert table is not None, "one of the two was read"
            return loader.truncate(table)
        return loader.run(request, progress)


def _format(
    format: str | FormatOptions | None, options: Mapping[str, Any] | None
) -> FormatOptions | None:
    if format is None or isinstance(format, str):
        return build_format(format, options or {})
    if options:
        raise StatementInvalid("format_options go with the name of a format")
    return format


def _policy(policy: str | ErrorPolicy) -> ErrorPolicy:
    if isinstance(policy, ErrorPolicy):
        return policy
    try:
        return on_error_of(policy)
    except ValueError as error:
        raise StatementInvalid(f"on_error cannot be {policy!r}: {error}") from error


def _metadata(columns: Mapping[str, str]) -> tuple[MetadataColumn, ...]:
    try:
        return tuple(MetadataColumn(name, metadata_kind(kind)) for name, kind in columns.items())
    except ValueError as error:
        raise StatementInvalid(f"a metadata column: {error}") from error


def _validation(validate: bool | int) -> Validation | None:
    if validate is False:
        return None
    return Validation() if validate is True else Validation(validate)
