"""Pieces of one staged file, read by different tasks, become one outcome again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from calque.loader.model.content_hash import join
from calque.loader.model.data_file import DataFile
from calque.loader.model.error_policy import ErrorMode, over_limit, skipped_message, status_of
from calque.loader.model.outcome import FileOutcome, RowError, Status, TaskResult
from calque.loader.model.plan import WritePlan
from calque.loader.run.formats.reader import shift_error
from calque.loader.run.task_output import PieceOutcome, TaskOutput


@dataclass(frozen=True, slots=True)
class MisalignedPiece:
    """A piece that does not begin where the one before it ends: its cut fell inside quotes."""

    location: str
    offset: int
    begin: int
    """Where the piece before it ends, and so where its first record begins."""


class PieceJoiner:
    """Takes task outputs in any order; gives results once every piece of a file is in."""

    def __init__(self, plan: WritePlan, counts: dict[str, int]) -> None:
        self._plan = plan
        self._counts = counts
        self._waiting: dict[str, dict[int, PieceOutcome]] = {}
        self.misaligned: list[MisalignedPiece] = []
        """Pieces that must be read again; what they bring is added as that of the others."""

    def add(self, output: TaskOutput) -> TaskResult:
        """The result of a task, with what was waiting for it."""
        files: list[DataFile] = list(output.data_files)
        outcomes: list[FileOutcome] = []
        for piece in output.pieces:
            location = piece.outcome.location
            if self._counts.get(location, 1) == 1:
                files.extend(piece.data_files)
                outcomes.append(piece.outcome)
                continue
            held = self._waiting.setdefault(location, {})
            held[piece.join_info.offset] = piece
            if len(held) == self._counts[location]:
                self._join(self._waiting.pop(location), files, outcomes)
        return TaskResult(tuple(files), tuple(outcomes))

    def _join(
        self,
        held: dict[int, PieceOutcome],
        files: list[DataFile],
        outcomes: list[FileOutcome],
    ) -> None:
        pieces = [held[offset] for offset in sorted(held)]
        failed = _first_failed(pieces)
        misaligned = _misaligned_pieces(pieces) if failed is None else []
        if misaligned:
            self._waiting[misaligned[0].location] = held
            for one in misaligned:
                del held[one.offset]
            self.misaligned += misaligned
            return
        outcome = _join_outcomes(pieces, self._plan, failed)
        outcomes.append(outcome)
        if outcome.rows_loaded:
            files.extend(file for piece in pieces for file in piece.data_files)


def _first_failed(pieces: Sequence[PieceOutcome]) -> PieceOutcome | None:
    """The first piece that failed, if every cut before it fell between records.

    A piece that begins inside of quotes fails for no reason of the file's.
    """
    for left, right in zip(pieces, [*pieces[1:], None], strict=True):
        if left.outcome.message is not None:
            return left
        if right is None or left.join_info.extent.end != right.join_info.extent.start:
            return None
    return None


def _misaligned_pieces(pieces: Sequence[PieceOutcome]) -> list[MisalignedPiece]:
    """Pieces that do not begin where the one before them ends.

    Of the first it is certain where it begins; of the others likely, since a reader that began
    inside of quotes soon finds the end of a record. All are read again at once, and looked at
    again: every round sets at least one right for good.
    """
    return [
        MisalignedPiece(right.outcome.location, right.join_info.offset, left.join_info.extent.end)
        for left, right in pairwise(pieces)
        if left.outcome.message is None
        and left.join_info.extent.end != right.join_info.extent.start
    ]


def _join_outcomes(
    pieces: Sequence[PieceOutcome], plan: WritePlan, failed: PieceOutcome | None
) -> FileOutcome:
    errors: list[RowError] = []
    lines = records = 0
    for piece in pieces:
        errors += [shift_error(error, lines, records) for error in piece.outcome.errors]
        lines += piece.join_info.extent.lines
        records += piece.join_info.extent.records
    count = sum(piece.outcome.error_count for piece in pieces)
    parsed = sum(piece.outcome.rows_parsed for piece in pieces)
    policy = plan.on_error
    aborted = policy.mode is ErrorMode.ABORT and count >= policy.limit
    lost = aborted or over_limit(policy, count, parsed, final=True)
    loaded = 0 if lost or failed else parsed - count
    message = failed.outcome.message if failed else None
    if lost and message is None:
        message = skipped_message(policy, count)
    return FileOutcome(
        location=pieces[0].outcome.location,
        status=_status_of(parsed, count, loaded, failed, lost=lost),
        rows_parsed=parsed,
        rows_loaded=loaded,
        error_count=count,
        errors=tuple(errors[: plan.keep_errors]),
        bytes=sum(piece.outcome.bytes for piece in pieces),
        seconds=sum(piece.outcome.seconds for piece in pieces),
        content_hash=_hash_of(pieces),
        message=message,
    )


def _status_of(
    parsed: int, errors: int, loaded: int, failed: PieceOutcome | None, *, lost: bool
) -> Status:
    if failed is not None:
        return failed.outcome.status
    return Status.FAILED if lost else status_of(parsed, errors, loaded)


def _hash_of(pieces: Sequence[PieceOutcome]) -> str | None:
    blocks: list[bytes] = []
    for piece in pieces:
        if piece.join_info.hashes is None:
            return None
        blocks.extend(piece.join_info.hashes)
    return join(blocks)
