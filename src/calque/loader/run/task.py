"""One task of a load: read its pieces, cast, write, and say what became of each staged file.

This runs in a worker process or a Spark executor, so it imports only what it uses. What it returns
is all that counts: files written by an attempt that is not collected are orphans.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from calque import faults
from calque.errors import CalqueError, ConditionNotMatch, NotFound
from calque.loader.model.content_hash import join
from calque.loader.model.data_file import DataFile
from calque.loader.model.error_policy import ErrorMode, over_limit, skipped_message, status_of
from calque.loader.model.file_formats import ParquetFormat
from calque.loader.model.outcome import FileOutcome, RowError, Status
from calque.loader.model.plan import Advance, Piece, WritePlan, WriteTask
from calque.loader.run.formats.guard import refusing
from calque.loader.run.formats.reader import Extent, Parsed, ReadSpec
from calque.loader.run.formats.registry import open_reader
from calque.loader.run.formats.reject import Code, FileRefused
from calque.loader.run.formats.staged_source import Source
from calque.loader.run.metadata_columns import with_metadata
from calque.loader.run.writing.root import TableRoot
from calque.loader.run.writing.writer import TaskWriter
from calque.operator import Operator
from calque.operator.registry import split
from calque.values.row_errors import RowErrors


@dataclass(frozen=True, slots=True)
class Share:
    """What a piece of a cut file tells for joining it with the others."""

    offset: int
    extent: Extent
    hashes: tuple[bytes, ...] | None = None


WHOLE = Share(0, Extent())
"""Of a file that was not cut: one value for all, since a load may have a hundred thousand."""


@dataclass(frozen=True, slots=True)
class PieceOutcome:
    """What became of a piece; pieces of one file are joined by the engine."""

    outcome: FileOutcome
    share: Share = WHOLE
    data_files: tuple[DataFile, ...] = ()
    """Data files that hold rows of this piece alone."""

    @property
    def advance(self) -> Advance:
        """What the piece adds to the progress; a file counts with its first piece."""
        return Advance(self.share.offset == 0, self.outcome.rows_loaded, self.outcome.bytes)


@dataclass(frozen=True, slots=True)
class TaskOutput:
    """What a task attempt returns: shared data files, and each piece's outcome."""

    number: int
    data_files: tuple[DataFile, ...]
    pieces: tuple[PieceOutcome, ...]

    @property
    def advance(self) -> Advance:
        return sum((piece.advance for piece in self.pieces), Advance())


class Operators:
    """Operators by the root of their service, opened once for each with the stage's options."""

    def __init__(self, options: Mapping[str, object] | None = None) -> None:
        self._options = dict(options or {})
        self._open: dict[str, Operator] = {}

    def at(self, location: str) -> tuple[Operator, str]:
        root, path = split(location)
        if root not in self._open:
            self._open[root] = Operator.from_uri(root, **cast(Any, self._options))
        return self._open[root], path

    def close(self) -> None:
        for operator in self._open.values():
            operator.close()


def run_task(
    plan: WritePlan,
    task: WriteTask,
    attempt: str,
    told: Callable[[PieceOutcome], None] = lambda piece: None,
) -> TaskOutput:
    """Read and write the pieces of a task; each is told when it ended.

    Raises only what a retry may cure.
    """
    operators = Operators(plan.source_options)
    root = TableRoot.at(plan.root, plan.root_options)
    writer = TaskWriter(plan, root, task.number, attempt)
    run = _Run(plan, operators, root, writer, ReadSpec.of(plan))
    try:
        pieces = []
        for piece in task.pieces:
            pieces.append(run.piece(piece))
            told(pieces[-1])
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
class _Run:
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

    def piece(self, piece: Piece) -> PieceOutcome:
        if self.is_aborted:
            return _unread(piece)
        began = time.monotonic()
        source = Source(*self.operators.at(piece.file.location), piece)
        result = self._guarded(source, piece)
        if source.is_whole:
            self.errors += result.outcome.error_count
        timed = replace(result.outcome, bytes=source.bytes_read, seconds=time.monotonic() - began)
        return replace(result, outcome=timed)

    def _guarded(self, source: Source, piece: Piece) -> PieceOutcome:
        location = piece.file.location
        self.writer.begin(location, apart=not source.is_whole)
        try:
            adopted = self._adopted(source, piece)
            return adopted or self._parsed(source, piece)
        except FileRefused as error:
            outcome = _failed(location, error.message, (error.row_error,))
        except ConditionNotMatch as error:
            outcome = FileOutcome(location, Status.CHANGED, message=error.message)
        except NotFound:
            why = "the file has vanished since it was listed"
            outcome = _failed(location, why)
        except CalqueError as error:
            if error.retryable:
                raise
            outcome = _failed(location, error.message)
        self.writer.discard()
        return PieceOutcome(outcome, _share(source, Extent()))

    def _adopted(self, source: Source, piece: Piece) -> PieceOutcome | None:
        if not isinstance(self.plan.format, ParquetFormat):
            return None
        from calque.loader.run.formats.columnar.parquet import footer_of
        from calque.loader.run.writing import adopt

        if not adopt.may_adopt(self.plan, source):
            return None
        with refusing(source, self.plan.format.kind):
            metadata = footer_of(source)
            stats = adopt.stats_of(metadata)
            fits = adopt.fits(self.spec, metadata, stats)
        if not fits:
            return None
        files: tuple[DataFile, ...] = ()
        if not self.plan.validate_only:
            origin = self.operators.at(piece.file.location)
            path = self.writer.adopt_name()
            made = adopt.adopt(self.plan, source, origin, self.root, path, metadata, stats)
            files = (made,)
        self.writer.discard()
        rows = metadata.num_rows
        outcome = FileOutcome(source.location, status_of(rows, 0, rows), rows, rows)
        return PieceOutcome(outcome, data_files=files)

    def _parsed(self, source: Source, piece: Piece) -> PieceOutcome:
        tally = _Tally(self, source.is_whole)
        reader = open_reader(source, self.spec)
        for parsed in reader.read():
            tally.add(parsed)
            if tally.takes_rows and not self.plan.validate_only:
                rows = with_metadata(parsed, piece.file, self.plan)
                self.writer.add(rows)
            if tally.stops:
                break
        faults.point("task.read")
        hashes = source.hashes()
        outcome = tally.outcome(source, join(hashes) if hashes and source.is_whole else None)
        share = _share(source, reader.extent, hashes)
        if outcome.message is not None or not outcome.rows_loaded:
            self.writer.discard()
            return PieceOutcome(outcome, share)
        return PieceOutcome(outcome, share, self.writer.keep())


class _Tally:
    """Counts of one piece, and what the error policy makes of them.

    Errors in a part of a file decide nothing here: the part may begin inside of quotes, which shows
    only when the pieces are joined.
    """

    def __init__(self, run: _Run, whole: bool) -> None:
        self._whole = whole
        self._policy = run.plan.on_error
        self._before = run.errors
        self._records = 0
        self._errors: list[RowError] = []
        self._rejected = 0

    def add(self, parsed: Parsed) -> None:
        self._records += parsed.records
        self._rejected += len(parsed.rejected)
        self._errors.extend(parsed.errors)

    @property
    def stops(self) -> bool:
        """Nothing more needs to be read: the whole load is given up."""
        policy = self._policy
        errors = self._before + self._rejected
        return self._whole and policy.mode is ErrorMode.ABORT and errors >= policy.limit

    @property
    def takes_rows(self) -> bool:
        """The piece may still be loaded. Reading goes on in any case: counts stay true."""
        return not self.stops and not self._is_over(final=False)

    def outcome(self, source: Source, content_hash: str | None) -> FileOutcome:
        lost = self.stops or self._is_over(final=True)
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


def _failed(location: str, why: str, errors: tuple[RowError, ...] = ()) -> FileOutcome:
    return FileOutcome(
        location, Status.FAILED, error_count=max(1, len(errors)), errors=errors, message=why
    )


def _unread(piece: Piece) -> PieceOutcome:
    outcome = FileOutcome(
        piece.file.location, Status.FAILED, message="not read: the load was given up before"
    )
    return PieceOutcome(outcome, Share(piece.offset, Extent()))


def crashed(piece: Piece, why: CalqueError) -> PieceOutcome:
    """The outcome of a piece over which a library brought its process down, again and again."""
    refused = FileRefused.at(
        piece.file.location,
        Code.MALFORMED,
        f"the library that reads it crashed over it, so it must be damaged: {why.message}",
    )
    outcome = _failed(piece.file.location, refused.message, (refused.row_error,))
    return PieceOutcome(outcome, Share(piece.offset, Extent()))


def _share(source: Source, extent: Extent, hashes: tuple[bytes, ...] | None = None) -> Share:
    return WHOLE if source.is_whole else Share(source.start, extent, hashes)
