"""A stage before it is loaded: which files, read how, into which columns, and the first rows.

The steps are those of a load that makes its table, up to where that would claim files: no ledger
is opened, no table made, no JVM started.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import pyarrow as pa

from calque.config import Settings
from calque.errors import NotFound, Unsupported
from calque.loader.look.rows import html_of, rows_of
from calque.loader.model.file_formats import CsvFormat, FormatOptions
from calque.loader.model.outcome import describe_error
from calque.loader.model.plan import TargetSchema, WritePlan
from calque.loader.model.staged_file import StagedFile
from calque.loader.plan.dialect import choose_dialect, describe
from calque.loader.plan.evolve import schema_for_new_table
from calque.loader.plan.make_plan import EVERY_ERROR, UNCLAIMED, choose_format, choose_match, group
from calque.loader.plan.stage import Missing, Stage
from calque.loader.request.request import LoadRequest
from calque.loader.request.type_names import text_of_type
from calque.loader.run.engines.local import LocalEngine
from calque.loader.run.engines.sample import sample_rows
from calque.values import count_of
from calque.values.row_errors import RowError

FIRST_ROWS = 10
MOST_LISTED = 10_000
"""Files that a preview lists: a stage may have millions, and the first ones tell enough."""


@dataclass(frozen=True, slots=True, repr=False)
class StagePreview:
    """What a load of the stage would read, and how."""

    stage: str
    files: int
    is_all: bool
    """Whether the listing came to its end."""
    bytes: int
    ignored: int
    """Files passed over by their names: hidden, or still being written."""
    format: FormatOptions
    schema: pa.Schema
    rows: pa.Table
    """The first ones, as they would be loaded."""
    refused: tuple[RowError, ...] = ()
    """Those that stand among them and would not be loaded."""
    notes: list[str] = field(default_factory=list)

    @property
    def reading(self) -> str:
        """The format in words; of delimited text with its dialect."""
        if isinstance(self.format, CsvFormat):
            return describe(self.format)
        return self.format.kind.upper()

    @property
    def summary(self) -> str:
        """How many files, read how, in a line."""
        return f"{count_of(self.files, 'file')}{'' if self.is_all else ' and more'}, {self.reading}"

    def __repr__(self) -> str:
        return f"<Preview of {self.stage}: {self.summary}; {len(self.schema)} columns>"

    def _repr_html_(self) -> str:
        return html_of(f"{self.stage}: {self.summary}", self.notes, self.schema, self.rows)

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "stage": self.stage,
            "files": self.files,
            "is_all": self.is_all,
            "bytes": self.bytes,
            "ignored": self.ignored,
            "format": self.format.kind,
            "reading": self.reading,
            "columns": [{"name": one.name, "type": text_of_type(one.type)} for one in self.schema],
            "rows": rows_of(self.rows),
            "refused": [one._asdict() for one in self.refused],
            "notes": self.notes,
        }


def preview_stage(request: LoadRequest, settings: Settings, rows: int = FIRST_ROWS) -> StagePreview:
    """Look at the stage of a request as a load would that makes its table.

    The request's ``into`` counts for nothing: a preview has no table. Raises NotFound where there
    is no file to look at, and the error of the first file that cannot be read.
    """
    if request.transformation is not None:
        raise Unsupported("a preview shows files as they are: leave the SELECT out")
    stage = Stage(request.stage, settings, files=request.files, pattern=request.pattern)
    listed = list(islice(_list_files(stage, request), MOST_LISTED + 1))
    if not listed:
        stage.must_be_there()
        raise NotFound(f"no file matches {request.stage}", hint="Check its spelling.")
    files = listed[:MOST_LISTED]
    reading = choose_dialect(
        request, choose_format(request, files), files, stage.options, {}, _column_names(request)
    )
    schema = schema_for_new_table(request, LocalEngine(), files, reading.format, stage.options)
    plan = _plan(request, stage, files, reading.format, schema)
    sample = sample_rows(plan, rows)
    return StagePreview(
        stage=stage.prefix,
        files=len(files),
        is_all=len(listed) == len(files),
        bytes=sum(file.identity.size for file in files),
        ignored=stage.ignored,
        format=reading.format,
        schema=schema,
        rows=sample.rows,
        refused=sample.refused,
        notes=[note for note in (reading.note, _refusal(sample.refused)) if note is not None],
    )


def _refusal(refused: Sequence[RowError]) -> str | None:
    if not refused:
        return None
    many, first = count_of(len(refused), "row"), refused[0]
    name = first.file.rpartition("/")[2]
    return f"{many} among these would be refused; the first: {name}, {describe_error(first)}"


def _list_files(stage: Stage, request: LoadRequest) -> Iterator[StagedFile]:
    if not request.files:
        yield from stage.list()
        return
    for found in stage.look_up_files():
        if isinstance(found, Missing):
            raise NotFound(f"{found.location}: {found.why}")
        yield found


def _column_names(request: LoadRequest) -> Sequence[str]:
    return [] if request.schema is None else list(request.schema.names)


def _plan(
    request: LoadRequest,
    stage: Stage,
    files: Sequence[StagedFile],
    format: FormatOptions,
    schema: pa.Schema,
) -> WritePlan:
    return WritePlan(
        load_id=UNCLAIMED,
        root="",
        source_options=stage.options,
        tasks=group(files),
        format=format,
        target=TargetSchema(schema=schema),
        on_error=EVERY_ERROR,
        match=choose_match(request, format),
        columns=request.columns,
        metadata_columns=request.metadata_columns,
    )
