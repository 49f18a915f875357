"""One task of a load: read its pieces, cast, write, and say what became of each staged file.

This runs in a worker process or a Spark executor, so it imports only what it uses. What it returns
is all that counts: files written by an attempt that is not collected are orphans.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from calque import faults
from calque.errors import CalqueError, ConditionNotMatch, NotFound
from calque.loader.model.content_hash import hash_of_copy, join
from calque.loader.model.data_file import DataFile
from calque.loader.model.error_policy import ErrorMode, over_limit, skipped_message, status_of
from calque.loader.model.file_formats import ParquetFormat
from calque.loader.model.outcome import VANISHED, FileOutcome, RowError, Status
from calque.loader.model.plan import Piece, WritePlan, WriteTask
from calque.loader.run.formats.columnar.parquet import footer_of
from calque.loader.run.formats.guard import refuse_crash, refuse_on_error
from calque.loader.run.formats.reader import Extent, ParsedBatch, ReadSpec
from calque.loader.run.formats.refusal import FileRefused
from calque.loader.run.formats.registry import open_reader
from calque.loader.run.formats.staged_source import Source
from calque.loader.run.metadata_columns import with_metadata
from calque.loader.run.operators import Operators
from calque.loader.run.task_output import NOT_CUT, JoinInfo, PieceOutcome, TaskOutput
from calque.loader.run.writing import copy_parquet
from calque.loader.run.writing.footer import column_stats
from calque.loader.run.writing.table_root import TableRoot
from calque.loader.run.writing.task_writer import TaskWriter
from calque.values.row_errors import RowErrors


def run_task(
    plan: WritePlan,
    task: WriteTask,
    attempt: str,
    on_piece: Callable[[PieceOutcome], None] = lambda piece: None,
) -> TaskOutput:
    """Read and write the pieces of a task; ``on_piece`` is told as each ends.

    Raises only what a retry may cure.
    """
    operators = Operators(plan.source_options)
    root = TableRoot.at(plan.root, plan.root_options)
    writer = TaskWriter(plan, root, task.number, attempt)
    run = _TaskRun(plan, operators, root, writer, ReadSpec.of(plan))
    try:
        pieces = []
        for piece in task.pieces:
            pieces.append(run.run_piece(piece))
            on_piece(pieces[-1])
        shared = run.writer.finish()
        faults.point("task.written")
        return TaskOutput(task.number, shared, tuple(pieces))
    except BaseException:
        run.writer.abandon()
        raise
    finally:
        root.close()
        operators.close()


@dataclass(slots=True)
class _TaskRun:
    plan: WritePlan
    operators: Operators
    root: TableRoot
    writer: TaskWriter
    spec: ReadSpec
    errors: int = 0

    @property
    def is_aborted(self) -> bool:
        policy = self.plan.on_error
        return policy.mode is ErrorMode.ABORT and self.errors >= policy.limit

    def run_piece(self, piece: Piece) -> PieceOutcome:
        if self.is_aborted:
            return _unread_outcome(piece)
        began = time.monotonic()
        source = Source(*self.operators.at(piece.file.location), piece)
        result = self._read_piece(source, piece)
        # Errors of a cut file count when its pieces are joined: this one may begin inside quotes.
        if source.is_whole:
            self.errors += result.outcome.error_count
        timed = replace(result.outcome, bytes=source.bytes_read, seconds=time.monotonic() - began)
        return replace(result, outcome=timed)

    def _read_piece(self, source: Source, piece: Piece) -> PieceOutcome:
        location = piece.file.location
        self.writer.begin(location, apart=not source.is_whole)
        try:
            copied = self._try_copy(source, piece)
            return copied or self._parse(source, piece)
        except FileRefused as error:
            outcome = _failed_outcome(location, error.message, (error.row_error,))
        except ConditionNotMatch as error:
            outcome = FileOutcome(location, Status.CHANGED, message=error.message)
        except NotFound:
            outcome = _failed_outcome(location, VANISHED)
        except CalqueError as error:
            if error.retryable:
                raise
            outcome = _failed_outcome(location, error.message)
        self.writer.discard()
        return PieceOutcome(outcome, _join_info(source, Extent()))

    def _try_copy(self, source: Source, piece: Piece) -> PieceOutcome | None:
        if not isinstance(self.plan.format, ParquetFormat):
            return None
        if not copy_parquet.may_copy(self.plan, source):
            return None
        with refuse_on_error(source, self.plan.format.kind):
            metadata = footer_of(source)
            stats = column_stats(metadata)
            fits = copy_parquet.fits_table(self.spec, metadata, stats)
        if not fits:
            return None
        files: tuple[DataFile, ...] = ()
        if not self.plan.validate_only:
            origin = self.operators.at(piece.file.location)
            path = self.writer.next_path()
            files = (copy_parquet.copy_parquet(source, origin, self.root, path, metadata, stats),)
        self.writer.discard()
        rows = metadata.num_rows
        outcome = FileOutcome(
            source.location,
            status_of(rows, 0, rows),
            rows,
            rows,
            content_hash=hash_of_copy(files[0].path) if files else None,
        )
        return PieceOutcome(outcome, data_files=files)

    def _parse(self, source: Source, piece: Piece) -> PieceOutcome:
        tally = _Tally(self, source.is_whole)
        reader = open_reader(source, self.spec)
        for parsed in reader.read():
            tally.add(parsed)
            if tally.can_load and not self.plan.validate_only:
                rows = with_metadata(parsed, piece.file, self.plan)
                self.writer.add(rows)
            if tally.is_given_up:
                break
        faults.point("task.read")
        if tally.can_load and not self.plan.validate_only:
            source.finish_hash()
        hashes = source.hashes()
        outcome = tally.outcome(source, join(hashes) if hashes and source.is_whole else None)
        join_info = _join_info(source, reader.extent, hashes)
        if outcome.message is not None or not outcome.rows_loaded:
            self.writer.discard()
            return PieceOutcome(outcome, join_info)
        return PieceOutcome(outcome, join_info, self.writer.keep())


class _Tally:
    """Counts of one piece, and what the error policy makes of them.

    Errors in a part of a file decide nothing here: the part may begin inside of quotes, which shows
    only when the pieces are joined.
    """

    def __init__(self, run: _TaskRun, whole: bool) -> None:
        self._whole = whole
        self._policy = run.plan.on_error
        self._before = run.errors
        self._records = 0
        self._errors: list[RowError] = []
        self._rejected = 0

    def add(self, parsed: ParsedBatch) -> None:
        self._records += parsed.records
        self._rejected += len(parsed.rejected)
        self._errors.extend(parsed.errors)

    @property
    def is_given_up(self) -> bool:
        """Nothing more needs to be read: the whole load is given up."""
        policy = self._policy
        errors = self._before + self._rejected
        return self._whole and policy.mode is ErrorMode.ABORT and errors >= policy.limit

    @property
    def can_load(self) -> bool:
        """The piece may still be loaded. Reading goes on in any case: counts stay true."""
        return not self.is_given_up and not self._is_over(final=False)

    def outcome(self, source: Source, content_hash: str | None) -> FileOutcome:
        lost = self.is_given_up or self._is_over(final=True)
        loaded = 0 if lost else self._records - self._rejected
        status = Status.FAILED if lost else status_of(self._records, self._rejected, loaded)
        return FileOutcome(
            location=source.location,
            status=status,
            rows_parsed=self._records,
            rows_loaded=loaded,
            error_count=self._rejected,
            errors=RowErrors.of(self._errors) if self._errors else (),
            content_hash=content_hash,
            message=skipped_message(self._policy, self._rejected) if lost else None,
        )

    def _is_over(self, *, final: bool) -> bool:
        return self._whole and over_limit(self._policy, self._rejected, self._records, final=final)


def _failed_outcome(location: str, why: str, errors: tuple[RowError, ...] = ()) -> FileOutcome:
    return FileOutcome(
        location, Status.FAILED, error_count=max(1, len(errors)), errors=errors, message=why
    )


def _unread_outcome(piece: Piece) -> PieceOutcome:
    outcome = FileOutcome(
        piece.file.location, Status.FAILED, message="not read: the load was given up before"
    )
    return PieceOutcome(outcome, JoinInfo(piece.offset, Extent()))


def crash_outcome(piece: Piece, why: CalqueError) -> PieceOutcome:
    """The outcome of a piece over which a library brought its process down, again and again."""
    refused = refuse_crash(piece.file.location, why)
    outcome = _failed_outcome(piece.file.location, refused.message, (refused.row_error,))
    return PieceOutcome(outcome, JoinInfo(piece.offset, Extent()))


def _join_info(source: Source, extent: Extent, hashes: tuple[bytes, ...] | None = None) -> JoinInfo:
    return NOT_CUT if source.is_whole else JoinInfo(source.start, extent, hashes)
