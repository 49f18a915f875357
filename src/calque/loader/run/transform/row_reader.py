"""The reading half of a transformation: rows as the file spells them, and outcomes behind them."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from calque.errors import CalqueError, ConditionNotMatch, NotFound
from calque.loader.model.content_hash import join
from calque.loader.model.file_formats import CsvFormat, FormatOptions
from calque.loader.model.outcome import VANISHED, FileOutcome, Status
from calque.loader.model.plan import ColumnMatch, MetadataKind, Piece, WritePlan, WriteTask
from calque.loader.model.staged_file import StagedFile
from calque.loader.run.crash_probe import refuse_crashing_file
from calque.loader.run.formats.reader import ParsedBatch, ReadSpec
from calque.loader.run.formats.refusal import FileRefused
from calque.loader.run.formats.registry import open_reader
from calque.loader.run.formats.staged_source import Source
from calque.loader.run.metadata_columns import TYPES, metadata_values
from calque.loader.run.operators import Operators
from calque.loader.run.task_output import PieceOutcome

OUTCOME = "__calque_outcome"


def select_columns(found: pa.Schema, format: FormatOptions) -> pa.Schema:
    """The files' columns as a SELECT names them: without a header ``_c0`` is the first."""
    if not is_headless(format):
        return found
    return pa.schema([field.with_name(f"_c{index}") for index, field in enumerate(found)])


def is_headless(format: FormatOptions) -> bool:
    """Columns have places and no names."""
    return isinstance(format, CsvFormat) and not format.parse_header


def _position_names(raw: pa.Schema, format: FormatOptions) -> list[str]:
    """``$1``, ``$2`` … of delimited text; records of other formats have names."""
    width = len(raw.names) if isinstance(format, CsvFormat) else 0
    return [f"${index + 1}" for index in range(width)]


def source_schema(raw: pa.Schema, format: FormatOptions) -> pa.Schema:
    """What expressions may name: the file's columns, their places, metadata."""
    fields = [*raw]
    fields += [
        raw.field(index).with_name(name) for index, name in enumerate(_position_names(raw, format))
    ]
    fields += [pa.field(f"_metadata_{kind.value}", type) for kind, type in TYPES.items()]
    return pa.schema([*fields, pa.field(OUTCOME, pa.binary())])


@dataclass(frozen=True, slots=True)
class RowReader:
    """Runs in an executor: a task in, rows out."""

    plan: WritePlan
    raw: pa.Schema

    def read_task(self, task: WriteTask) -> Iterator[pa.RecordBatch]:
        """The rows of each piece, and behind them its outcome."""
        operators = Operators(self.plan.source_options)
        try:
            for piece in task.pieces:
                source = Source(*operators.at(piece.file.location), piece)
                yield from self._read_piece(source, piece)
        finally:
            operators.close()

    def _read_piece(self, source: Source, piece: Piece) -> Iterator[pa.RecordBatch]:
        outcome = FileOutcome(piece.file.location, Status.LOADED)
        try:
            refuse_crashing_file(piece, self._spec(), self.plan.source_options)
            for parsed in open_reader(source, self._spec()).read():
                outcome = _add_counts(outcome, parsed, self.plan.keep_errors)
                yield self._rows(parsed, piece.file)
            source.finish_hash()
        except FileRefused as error:
            outcome = _fail(outcome, error.message, error)
        except ConditionNotMatch as error:
            outcome = replace(outcome, status=Status.CHANGED, message=error.message)
        except NotFound:
            outcome = _fail(outcome, VANISHED)
        except CalqueError as error:
            if error.retryable:
                raise
            outcome = _fail(outcome, error.message)
        hashes = source.hashes()
        content = join(hashes) if hashes else None
        outcome = replace(outcome, bytes=source.bytes_read, content_hash=content)
        yield self._outcome_row(PieceOutcome(outcome))

    @property
    def _schema(self) -> pa.Schema:
        return source_schema(self.raw, self.plan.format)

    def _spec(self) -> ReadSpec:
        match: ColumnMatch = "position" if is_headless(self.plan.format) else "name_insensitive"
        return ReadSpec(
            format=self.plan.format,
            schema=self.raw,
            match=match,
            keep_errors=self.plan.keep_errors,
        )

    def _rows(self, parsed: ParsedBatch, file: StagedFile) -> pa.RecordBatch:
        columns = list(parsed.rows.columns)
        columns += columns[: len(_position_names(self.raw, self.plan.format))]
        columns += [metadata_values(kind, parsed, file, self.plan.load_id) for kind in MetadataKind]
        columns.append(pa.nulls(parsed.rows.num_rows, pa.binary()))
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _outcome_row(self, outcome: PieceOutcome) -> pa.RecordBatch:
        schema = self._schema
        columns = [pa.nulls(1, field.type) for field in schema]
        columns[schema.get_field_index("_metadata_file")] = pa.array([outcome.outcome.location])
        columns[-1] = pa.array([pickle.dumps(outcome)], pa.binary())
        return pa.RecordBatch.from_arrays(columns, schema=schema)


def _add_counts(outcome: FileOutcome, parsed: ParsedBatch, keep: int) -> FileOutcome:
    return replace(
        outcome,
        rows_parsed=outcome.rows_parsed + parsed.records,
        error_count=outcome.error_count + len(parsed.rejected),
        errors=(*outcome.errors, *parsed.errors)[:keep],
    )


def _fail(outcome: FileOutcome, why: str, error: FileRefused | None = None) -> FileOutcome:
    errors = outcome.errors if error is None else (*outcome.errors, error.row_error)
    return replace(
        outcome,
        status=Status.FAILED,
        error_count=outcome.error_count + 1,
        errors=errors,
        message=why,
    )
