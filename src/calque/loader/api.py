"""``calque.load`` and ``calque.sql``: a statement from Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from calque.config import Settings, load_settings
from calque.loader.loader import Loader
from calque.loader.look.stage_preview import FIRST_ROWS, StagePreview, preview_stage
from calque.loader.model.load_progress import OnProgress
from calque.loader.progress_bar import shown_progress
from calque.loader.report import Report
from calque.loader.request.keywords import LoadKeywords, request_of, signature_of
from calque.loader.request.paths import Location, Stages
from calque.spark.session import SparkOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def load(
    stage: Stages,
    into: Location,
    *,
    spark: SparkSession | SparkOptions | str | None = None,
    settings: Settings | None = None,
    progress: OnProgress | bool | None = None,
    **keywords: Unpack[LoadKeywords],
) -> Report:
    """Load the files of a stage into a table, each exactly once.

    Run it as often as you like, in as many places as you like, killed at any step: a file that is
    in the table is not loaded again while it stays the same. Raises ``LoadAborted`` (with the
    ``report``) when ``on_error`` gives the load up; then nothing of it was loaded.

    Which files:
        stage: a folder, file, glob or URL, ``@name`` of a configured stage, or a list of files.
        files, pattern: only these names; only names that this regular expression matches.
        force: load what is loaded already. load_uncertain_files: also what may have been.
        max_files, size_limit: stop at so many files or bytes; the next run takes the next ones.
        min_age: leave files alone that changed less than so many seconds ago.
        on_changed: ``reload``, ``skip``, ``error`` or ``replace`` files that changed since.

    How they are read:
        format, format_options: ``"csv"`` and ``{"skip_header": 1}``; by extension if not said.
        columns: the columns that fields fill, in order. match_by: ``case_sensitive``,
        ``case_insensitive``, or ``none`` for the order of the columns.
        metadata_columns: ``{"source": "file"}`` fills a column from the file. rescue_column: values
        that do not fit go there as JSON.
        on_error: ``abort_statement``, ``abort_N``, ``continue``, ``skip_file``, ``skip_file_N`` or
        ``skip_file_N%``.

    The table:
        into: a name, a path, a URL, or ``iceberg:PATH``.
        create: False if it must be there. schema, partition_by: of a table that is to be made.
        evolve, evolve_limit: let files bring new columns, at most so many.

    And then:
        purge, archive: remove files, or move them there, once they are loaded.
        label: a second run of the same label gives the first one's report.
        dry_run: only plan. validate: True returns every error, a number so many rows; no load.
        return_failed_only: the report has only what went wrong.
        lease_seconds: a loader that was silent for so long is taken for dead.
        spark: a session, options, or the URL of a master; ``"local"`` for plain processes.
        settings: in the place of calque.toml.
        progress: a function that is called as the load goes on, True for a bar, False for nothing.
        In a notebook there is a line by itself.
    """
    request = request_of(stage, into, keywords)
    with Loader(settings=settings, spark=spark) as loader, shown_progress(progress) as told:
        return loader.run(request, told)


# The keywords are spelled once, in LoadKeywords; who asks for the signature sees them all.
load.__signature__ = signature_of(load)  # type: ignore[attr-defined]


_OF_READING = {
    "columns",
    "files",
    "format",
    "format_options",
    "match_by",
    "metadata_columns",
    "pattern",
    "schema",
}
"""The keywords of a load that a preview looks at."""


def preview(
    stage: Stages,
    *,
    rows: int = FIRST_ROWS,
    settings: Settings | None = None,
    **keywords: Unpack[LoadKeywords],
) -> StagePreview:
    """Look at what a load of the stage would read: files, dialect, columns, first rows.

    ``keywords`` are those of :func:`load` that say which files, and how they are read: ``format``,
    ``format_options``, ``files``, ``pattern``, ``schema``, ``columns``, ``metadata_columns``,
    ``match_by``. Nothing is written, no table is made, no ledger opened, no JVM started.
    """
    for name in keywords.keys() & LoadKeywords.__annotations__.keys() - _OF_READING:
        raise TypeError(f"preview() takes no {name!r}: it says nothing of how files are read")
    request = request_of(stage, "", keywords)
    return preview_stage(request, settings or load_settings(), rows)


def sql(
    text: str,
    *,
    spark: SparkSession | SparkOptions | str | None = None,
    settings: Settings | None = None,
    progress: OnProgress | bool | None = None,
) -> Report:
    """Run a ``COPY INTO`` (Snowflake, Databend or Databricks spelling) or a ``TRUNCATE TABLE``."""
    from calque.loader.request.parse import parse, parse_truncate  # SQL, which few loads speak

    settings = settings or load_settings()
    table = parse_truncate(text)
    request = None if table is not None else parse(text, settings.formats)
    with Loader(settings=settings, spark=spark) as loader:
        if request is None:
            assert table is not None, "one of the two was read"
            return loader.truncate(table)
        with shown_progress(progress) as told:
            return loader.run(request, told)
