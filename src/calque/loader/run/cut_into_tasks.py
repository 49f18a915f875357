"""Files become tasks by their bytes: small ones share a task, a big one is cut if it can be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from calque.loader.model.content_hash import BLOCK
from calque.loader.model.file_formats import CsvFormat, FormatOptions, JsonFormat
from calque.loader.model.plan import MetadataKind, Piece, WritePlan, WriteTask
from calque.loader.model.staged_file import StagedFile
from calque.loader.run.formats.byte_buffer import is_utf8
from calque.loader.run.formats.compression import compression_by_name
from calque.values import MIB

SMALLEST_TASK = 64 * MIB
LARGEST_TASK = 512 * MIB
SMALL_FILE = 1 * MIB
"""Files below it on average are packed as tightly as can be, so that few data files come out."""
TASKS_PER_CORE = 3


def cut(plan: WritePlan, cores: int, size: int | None = None) -> tuple[WriteTask, ...]:
    """The plan's files as tasks of about equal bytes (``size``, if told), in their order."""
    files = list(plan.files)
    size = size or task_bytes(files, cores)
    divisible = not _counts_rows(plan)
    pieces = (
        piece for file in files for piece in _pieces(file, plan.format, size, divisible=divisible)
    )
    return tuple(
        WriteTask(number, tuple(group)) for number, group in enumerate(_group_pieces(pieces, size))
    )


def pack(
    files: Sequence[StagedFile], size: int = SMALLEST_TASK
) -> Iterator[tuple[StagedFile, ...]]:
    """Whole files in groups of about ``size`` bytes."""
    for group in _group_pieces((Piece(file) for file in files), size):
        yield tuple(piece.file for piece in group)


def task_bytes(files: Sequence[StagedFile], cores: int) -> int:
    """How much a task should read: enough for data files of a good size, little enough to share.

    There are as many tasks as keep every core busy to the end.
    """
    total = sum(file.identity.size for file in files)
    if files and total / len(files) < SMALL_FILE:
        return LARGEST_TASK
    fair = total // max(1, cores * TASKS_PER_CORE)
    size = min(max(fair, SMALLEST_TASK), LARGEST_TASK)
    rounds = -(-total // (size * max(1, cores)))
    return -(-total // max(1, rounds * cores)) if total > size else size


def can_be_cut(format: FormatOptions, name: str) -> bool:
    """Whether records can be found from the middle of a file: plain UTF-8 lines."""
    if isinstance(format, CsvFormat):
        lines = is_utf8(format.encoding) and format.record_delimiter in ("auto", "\n", "\r\n")
    else:
        lines = isinstance(format, JsonFormat) and not format.strip_outer_array
    if not lines or not isinstance(format, CsvFormat | JsonFormat):
        return False
    if format.compression == "auto":
        return compression_by_name(name) == "none"
    return format.compression == "none"


def _pieces(
    file: StagedFile, format: FormatOptions, size: int, *, divisible: bool
) -> Iterator[Piece]:
    total = file.identity.size
    if not divisible or total < 2 * size or not can_be_cut(format, file.name):
        yield Piece(file)
        return
    count = total // size
    step = -(-total // count)
    step += -step % BLOCK  # ranges begin where blocks of the content hash do
    for offset in range(0, total, step):
        yield Piece(file, offset, min(step, total - offset))


def _group_pieces(pieces: Iterable[Piece], size: int) -> Iterator[list[Piece]]:
    group: list[Piece] = []
    held = 0
    for piece in pieces:
        length = piece.file.identity.size if piece.length is None else piece.length
        if group and held + length // 2 > size:
            yield group
            group, held = [], 0
        group.append(piece)
        held += length
    if group:
        yield group


def _counts_rows(plan: WritePlan) -> bool:
    """Row numbers need a file to be read from its beginning."""
    wanted = any(column.kind is MetadataKind.ROW_NUMBER for column in plan.metadata_columns)
    return wanted or plan.transformation is not None
