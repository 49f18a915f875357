"""The plan of a load: which files go where and how, as data. Nothing is written to make one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

import pyarrow as pa

from calque.errors import StatementInvalid
from calque.loader.commit.tables import Lake
from calque.loader.model.error_policy import ErrorMode, ErrorPolicy
from calque.loader.model.file_formats import (
    AvroFormat,
    CsvFormat,
    FormatOptions,
    JsonFormat,
    OrcFormat,
    ParquetFormat,
    XmlFormat,
)
from calque.loader.model.plan import (
    ColumnMatch,
    Piece,
    TargetSchema,
    Transformation,
    WritePlan,
    WriteTask,
)
from calque.loader.model.staged_file import StagedFile
from calque.loader.plan.stage import Stage
from calque.loader.request.request import LoadRequest
from calque.loader.request.type_names import text_of_type
from calque.loader.run.metadata_columns import TYPES
from calque.values import MIB

TASK_BYTES = 64 * MIB
SMALL_FILE = 1 * MIB
SMALL_FILES_TASK = 256 * MIB
"""Small files are read many to a task, so that they do not become small files again."""

EXTENSIONS: dict[str, FormatOptions] = {
    ".csv": CsvFormat(),
    ".tsv": CsvFormat(field_delimiter="\t"),
    ".json": JsonFormat(),
    ".ndjson": JsonFormat(),
    ".jsonl": JsonFormat(),
    ".parquet": ParquetFormat(),
    ".orc": OrcFormat(),
    ".avro": AvroFormat(),
    ".xml": XmlFormat(),
}
EVERY_ERROR = ErrorPolicy(ErrorMode.CONTINUE)
UNCLAIMED = "dry-run"
"""Stands in a plan for the id of its load, until that has claimed the files."""
COMPRESSED = {".gz", ".zst", ".bz2", ".xz"}


def format_of(name: str) -> FormatOptions | None:
    """The format a file's extension tells, below the extension of a compression."""
    endings = [ending.lower() for ending in PurePosixPath(name).suffixes]
    while endings and endings[-1] in COMPRESSED:
        endings.pop()
    return EXTENSIONS.get(endings[-1]) if endings else None


def choose_format(request: LoadRequest, files: Sequence[StagedFile]) -> FormatOptions:
    """The request's format, else the one that every file's extension tells."""
    if request.format is not None:
        if request.format_is_implied:
            _refuse_others(request.format, files)
        return request.format
    found: dict[str, str] = {}
    for file in files:
        told = format_of(file.name)
        if told is None:
            raise StatementInvalid(
                f"the format of {file.name!r} cannot be told from its name",
                hint="Say it: FILE_FORMAT = (TYPE = CSV) or --format csv.",
            )
        found.setdefault(told.kind, file.name)
        if len(found) > 1:
            names = " and ".join(repr(name) for name in found.values())
            raise StatementInvalid(
                f"{names} have different formats",
                hint="Load one format at a time: give a PATTERN, or say the FILE_FORMAT.",
            )
        chosen = told
    return chosen


def _refuse_others(format: FormatOptions, files: Sequence[StagedFile]) -> None:
    for file in files:
        told = format_of(file.name)
        if told is not None and told.kind != format.kind:
            raise StatementInvalid(
                f"{file.name!r} is {told.kind.upper()} by its name, and what was said is of "
                f"{format.kind.upper()} files",
                hint=f"Leave it out, or say --format {format.kind} if its name is wrong.",
            )


class OneFormat:
    """For a watch, which a stray file must not stop: which files of a look are loaded together."""

    def __init__(self, request: LoadRequest) -> None:
        self._request = request
        self._kind: str | None = None

    def refuse(self, file: StagedFile) -> str | None:
        """Why a file cannot be loaded by this request at all; None if it can."""
        try:
            choose_format(self._request, [file])
        except StatementInvalid as error:
            return error.message
        return None

    def takes(self, file: StagedFile) -> bool:
        """Whether a file has the format of those before it; others wait for the next look."""
        kind = choose_format(self._request, [file]).kind
        self._kind = self._kind or kind
        return kind == self._kind


def choose_match(request: LoadRequest, format: FormatOptions) -> ColumnMatch:
    """By name where the files name their columns and no column list says otherwise."""
    nameless = request.match_by == "position" and request.transformation is None
    if nameless and isinstance(format, JsonFormat | XmlFormat):
        raise StatementInvalid(
            f"{format.kind.upper()} has names and no positions: its columns are matched by name",
            hint="MATCH_BY_COLUMN_NAME is CASE_SENSITIVE or CASE_INSENSITIVE here.",
        )
    if request.match_by is not None:
        return request.match_by
    if isinstance(format, CsvFormat) and (request.columns or not format.parse_header):
        return "position"
    return "name_insensitive"


def make_plan(
    request: LoadRequest,
    stage: Stage,
    lake: Lake,
    files: Sequence[StagedFile],
    target: TargetSchema,
    format: FormatOptions,
    *,
    is_made: bool = True,
) -> WritePlan:
    """One load of these files, grouped into tasks by bytes.

    ``is_made``: the table is there, or drafted; else a catalog cannot tell where it will be.
    """
    _check_columns(request, target)
    return WritePlan(
        load_id=UNCLAIMED,
        root=lake.root if is_made else "",
        root_options=lake.options,
        data_prefix=lake.data_prefix,
        source_options=stage.options,
        tasks=group(files),
        format=format,
        target=target,
        # A validation reads on after the first error: it is asked for all of them.
        on_error=request.on_error if request.validation is None else EVERY_ERROR,
        match=choose_match(request, format),
        columns=request.columns,
        transformation=_complete(request, target),
        metadata_columns=request.metadata_columns,
        rescue_column=request.rescue_column,
        validate_only=request.validation is not None,
    )


def _check_columns(request: LoadRequest, target: TargetSchema) -> None:
    """Every column that the request names is there, and fit for what it is to hold."""
    named = [*request.columns, *(one.column for one in request.metadata_columns)]
    named += [request.rescue_column] if request.rescue_column is not None else []
    unknown = [name for name in named if name not in target.schema.names]
    if unknown:
        raise StatementInvalid(
            f"the table has no column {', '.join(unknown)}",
            hint=f"Its columns: {', '.join(target.schema.names)}.",
        )
    holds = {one.column: TYPES[one.kind] for one in request.metadata_columns}
    if request.rescue_column is not None:
        holds[request.rescue_column] = pa.string()
    for name, kind in holds.items():
        have = target.schema.field(name).type
        if not (_is_text(have) or have.id == kind.id):
            raise StatementInvalid(
                f"the column {name} is {text_of_type(have)} and cannot hold {text_of_type(kind)}"
            )


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _complete(request: LoadRequest, target: TargetSchema) -> Transformation | None:
    """A SELECT with the table's columns that it fills: the list's, the aliases', or the first."""
    chosen = request.transformation
    if chosen is None:
        return None
    count = len(chosen.expressions)
    named = chosen.columns if len(chosen.columns) == count else ()
    if request.columns:
        columns = request.columns
    elif named and all(name in target.schema.names for name in named):
        columns = named
    else:
        columns = tuple(target.schema.names)
    if len(columns) != count:
        raise StatementInvalid(
            f"the SELECT has {count} expressions for {len(columns)} columns",
            hint=f"The table's columns: {', '.join(target.schema.names)}. To fill some of them "
            "list them after the table's name, or name each expression by AS.",
        )
    return replace(chosen, columns=columns)


def group(files: Sequence[StagedFile]) -> tuple[WriteTask, ...]:
    """Files in their order, cut into tasks of about equal bytes."""
    total = sum(file.identity.size for file in files)
    small = bool(files) and total / len(files) < SMALL_FILE
    most = SMALL_FILES_TASK if small else TASK_BYTES
    tasks: list[WriteTask] = []
    pieces: list[Piece] = []
    size = 0
    for file in files:
        if pieces and size + file.identity.size > most:
            tasks.append(WriteTask(len(tasks), tuple(pieces)))
            pieces, size = [], 0
        pieces.append(Piece(file))
        size += file.identity.size
    if pieces:
        tasks.append(WriteTask(len(tasks), tuple(pieces)))
    return tuple(tasks)
