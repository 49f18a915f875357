"""Pieces of one staged file, read by different tasks, become one outcome again."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from calque.load.digest import join
from calque.load.formats.reading import moved
from calque.load.manifest import DataFile, FileOutcome, RowError, Status, TaskResult
from calque.load.policy import over_limit, skipped_message, status_of
from calque.load.task import PieceOutcome, TaskOutput
from calque.load.work import ErrorMode, WritePlan


class Joiner:
    """Takes task outputs in any order; gives results once every piece of a file is in."""

    def __init__(self, plan: WritePlan, counts: dict[str, int]) -> None:
        self._plan = plan
        self._counts = counts
        self._waiting: dict[str, list[PieceOutcome]] = {}
        self.torn: list[str] = []
        """Files whose pieces do not meet: a cut fell inside quotes. They must be read whole."""

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
            held = self._waiting.setdefault(location, [])
            held.append(piece)
            if len(held) == self._counts[location]:
                self._join(self._waiting.pop(location), files, outcomes)
        return TaskResult(tuple(files), tuple(outcomes))

    def _join(
        self, pieces: list[PieceOutcome], files: list[DataFile], outcomes: list[FileOutcome]
    ) -> None:
        pieces.sort(key=lambda piece: piece.share.offset)
        failed = next((p for p in pieces if p.outcome.message is not None), None)
        if failed is None and not _meet(pieces):
            self.torn.append(pieces[0].outcome.location)
            return
        outcome = _joined(pieces, self._plan, failed)
        outcomes.append(outcome)
        if outcome.rows_loaded:
            files.extend(file for piece in pieces for file in piece.data_files)


def _meet(pieces: Sequence[PieceOutcome]) -> bool:
    """Every piece ends where the next begins; so all cuts fell between records."""
    return all(
        left.extent.end == right.extent.start
        for left, right in pairwise(piece.share for piece in pieces)
    )


def _joined(
    pieces: Sequence[PieceOutcome], plan: WritePlan, failed: PieceOutcome | None
) -> FileOutcome:
    errors: list[RowError] = []
    lines = records = 0
    for piece in pieces:
        errors += [moved(error, lines, records) for error in piece.outcome.errors]
        lines += piece.share.extent.lines
        records += piece.share.extent.records
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
        status=_status(parsed, count, loaded, failed, lost=lost),
        rows_parsed=parsed,
        rows_loaded=loaded,
        error_count=count,
        errors=tuple(errors[: plan.keep_errors]),
        bytes=sum(piece.outcome.bytes for piece in pieces),
        seconds=sum(piece.outcome.seconds for piece in pieces),
        content_hash=_hash(pieces),
        message=message,
    )


def _status(
    parsed: int, errors: int, loaded: int, failed: PieceOutcome | None, *, lost: bool
) -> Status:
    if failed is not None:
        return failed.outcome.status
    return Status.FAILED if lost else status_of(parsed, errors, loaded)


def _hash(pieces: Sequence[PieceOutcome]) -> str | None:
    blocks: list[bytes] = []
    for piece in pieces:
        if piece.share.hashes is None:
            return None
        blocks.extend(piece.share.hashes)
    return join(blocks)
