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
from calque.loader.run.formats.cast.rules import CastRules
from calque.loader.run.formats.cast.table_rows import Shaper
from calque.loader.run.formats.reject import Misfit
from calque.loader.run.task import PieceOutcome, TaskOutput
from calque.loader.run.transform.read_rows import OUTCOME
from calque.loader.run.writing.root import TableRoot
from calque.loader.run.writing.writer import TaskWriter

FILE, ROW = "__calque_file", "__calque_row"


@dataclass(slots=True)
class _Progress:
    """What was seen of the file that is being written."""

    rows: int = 0
    errors: list[RowError] = field(default_factory=list)
    misfits: int = 0


@dataclass(frozen=True, slots=True)
class WriteRows:
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
        shaped = [self._shape(batch)[0] for batch in table.to_batches()]
        schema = self.plan.target.schema
        batches = [batch.select(schema.names) for batch in shaped]
        return pa.Table.from_batches(batches).cast(schema) if batches else schema.empty_table()

    def _pieces(
        self, batches: Iterable[pa.RecordBatch], writer: TaskWriter
    ) -> Iterator[PieceOutcome]:
        progress, begun = _Progress(), False
        for batch in batches:
            for part in _at_outcomes(batch):
                if not begun:
                    writer.begin(part.column(FILE)[0].as_py())
                    begun = True
                packed = part.column(OUTCOME)[0].as_py()
                if packed is None:
                    self._add(part, writer, progress)
                    continue
                yield self._ended(pickle.loads(packed), writer, progress)
                progress, begun = _Progress(), False

    def _add(self, part: pa.RecordBatch, writer: TaskWriter, progress: _Progress) -> None:
        rows, misfits = self._shape(part)
        location = part.column(FILE)[0].as_py()
        numbers = part.column(ROW)
        for misfit in misfits:
            progress.misfits += 1
            if len(progress.errors) < self.plan.keep_errors:
                progress.errors.append(_error(misfit, location, numbers[misfit.row].as_py()))
        progress.rows += rows.num_rows
        if not self.plan.validate_only:
            writer.add(rows)

    def _shape(self, part: pa.RecordBatch) -> tuple[pa.RecordBatch, tuple[Misfit, ...]]:
        transformation = self.plan.transformation
        assert transformation is not None
        given = {name: f"v{index}" for index, name in enumerate(transformation.columns)}
        schema = self.plan.target.schema
        columns = [part.column(given[name]) if name in given else None for name in schema.names]
        shaper = Shaper(schema, CastRules.of(self.plan.format))
        shaped = shaper.shape(columns, part.num_rows)
        return shaped.rows, shaped.misfits

    def _ended(self, piece: PieceOutcome, writer: TaskWriter, progress: _Progress) -> PieceOutcome:
        outcome = self._judged(piece, progress)
        if outcome.status in (Status.FAILED, Status.CHANGED):
            writer.discard()
            return replace(piece, outcome=outcome)
        return replace(piece, outcome=outcome, data_files=writer.keep())

    def _judged(self, piece: PieceOutcome, progress: _Progress) -> FileOutcome:
        read, policy = piece.outcome, self.plan.on_error
        errors = read.error_count + progress.misfits
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


def _at_outcomes(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """A batch cut so that a row that carries an outcome stands alone."""
    start = 0
    for index in pc.indices_nonzero(pc.is_valid(batch.column(OUTCOME))).to_pylist():
        if index > start:
            yield batch.slice(start, index - start)
        yield batch.slice(index, 1)
        start = index + 1
    if start < batch.num_rows:
        yield batch.slice(start)


def _error(misfit: Misfit, location: str, row: int) -> RowError:
    return RowError(
        file=location,
        line=0,
        record=row,
        column=misfit.column,
        character=None,
        target_type=misfit.target_type,
        value=misfit.value,
        code=misfit.code,
        message=misfit.message,
        raw=None,
    )
