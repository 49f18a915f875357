"""The writing half of a transformation: what the SELECT gave is cast strictly and written."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from calque import faults
from calque.loader.model.error_policy import ErrorMode, over_limit, skipped_message, status_of
from calque.loader.model.outcome import FileOutcome, RowError, Status
from calque.loader.model.plan import WritePlan
from calque.loader.run.formats.cast.row_caster import RowCaster
from calque.loader.run.formats.cast.rules import CastRules
from calque.loader.run.formats.refusal import CellError
from calque.loader.run.task_output import PieceOutcome, TaskOutput
from calque.loader.run.transform.row_reader import OUTCOME
from calque.loader.run.writing.table_root import TableRoot
from calque.loader.run.writing.task_writer import TaskWriter

FILE, ROW = "__calque_file", "__calque_row"


@dataclass(slots=True)
class _FileProgress:
    """What was seen of the file that is being written."""

    rows: int = 0
    errors: list[RowError] = field(default_factory=list)
    cell_errors: int = 0


@dataclass(frozen=True, slots=True)
class RowWriter:
    """Runs in an executor: transformed rows in, a task's output out."""

    plan: WritePlan

    def write(self, batches: Iterable[pa.RecordBatch]) -> TaskOutput:
        """Write the rows of one task; what it returns is all that counts."""
        from pyspark import TaskContext

        context = TaskContext.get()
        number, attempt = (context.partitionId(), context.taskAttemptId()) if context else (0, 0)
        root = TableRoot.at(self.plan.root, self.plan.root_options)
        writer = TaskWriter(self.plan, root, number, f"{uuid.uuid4().hex[:6]}s{attempt}")
        try:
            pieces = tuple(self._pieces(batches, writer))
            shared = writer.finish()
            faults.point("task.written")
            return TaskOutput(number, shared, pieces)
        except BaseException:
            writer.abandon()
            raise
        finally:
            root.close()

    def cast_table(self, table: pa.Table) -> pa.Table:
        """Transformed rows as rows of the table; those that do not fit are left out."""
        cast = [self._cast(batch)[0] for batch in table.to_batches()]
        schema = self.plan.target.schema
        batches = [batch.select(schema.names) for batch in cast]
        return pa.Table.from_batches(batches).cast(schema) if batches else schema.empty_table()

    def _pieces(
        self, batches: Iterable[pa.RecordBatch], writer: TaskWriter
    ) -> Iterator[PieceOutcome]:
        progress, begun = _FileProgress(), False
        for batch in batches:
            for part in _split_at_outcomes(batch):
                if not begun:
                    writer.begin(part.column(FILE)[0].as_py())
                    begun = True
                packed = part.column(OUTCOME)[0].as_py()
                if packed is None:
                    self._add(part, writer, progress)
                    continue
                yield self._end_piece(pickle.loads(packed), writer, progress)
                progress, begun = _FileProgress(), False

    def _add(self, part: pa.RecordBatch, writer: TaskWriter, progress: _FileProgress) -> None:
        rows, cell_errors = self._cast(part)
        location = part.column(FILE)[0].as_py()
        numbers = part.column(ROW)
        for error in cell_errors:
            progress.cell_errors += 1
            if len(progress.errors) < self.plan.keep_errors:
                progress.errors.append(error.at(location, numbers[error.row].as_py()))
        progress.rows += rows.num_rows
        if not self.plan.validate_only:
            writer.add(rows)

    def _cast(self, part: pa.RecordBatch) -> tuple[pa.RecordBatch, tuple[CellError, ...]]:
        transformation = self.plan.transformation
        assert transformation is not None
        given = {name: f"v{index}" for index, name in enumerate(transformation.columns)}
        schema = self.plan.target.schema
        columns = [part.column(given[name]) if name in given else None for name in schema.names]
        caster = RowCaster(schema, CastRules.of(self.plan.format))
        cast = caster.cast(columns, part.num_rows)
        return cast.rows, cast.cell_errors

    def _end_piece(
        self, piece: PieceOutcome, writer: TaskWriter, progress: _FileProgress
    ) -> PieceOutcome:
        outcome = self._judge(piece, progress)
        if outcome.status in (Status.FAILED, Status.CHANGED):
            writer.discard()
            return replace(piece, outcome=outcome)
        return replace(piece, outcome=outcome, data_files=writer.keep())

    def _judge(self, piece: PieceOutcome, progress: _FileProgress) -> FileOutcome:
        read, policy = piece.outcome, self.plan.on_error
        errors = read.error_count + progress.cell_errors
        kept = (*read.errors, *progress.errors)[: self.plan.keep_errors]
        told = replace(read, error_count=errors, errors=kept)
        if read.status is not Status.LOADED:
            return told
        aborted = policy.mode is ErrorMode.ABORT and errors >= policy.limit
        if aborted or over_limit(policy, errors, read.rows_parsed, final=True):
            why = skipped_message(policy, errors)
            return replace(told, status=Status.FAILED, rows_loaded=0, message=why)
        return replace(
            told,
            status=status_of(read.rows_parsed, errors, progress.rows),
            rows_loaded=progress.rows,
        )


def _split_at_outcomes(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """A batch cut so that a row that carries an outcome stands alone."""
    start = 0
    for index in pc.indices_nonzero(pc.is_valid(batch.column(OUTCOME))).to_pylist():
        if index > start:
            yield batch.slice(start, index - start)
        yield batch.slice(index, 1)
        start = index + 1
    if start < batch.num_rows:
        yield batch.slice(start)
