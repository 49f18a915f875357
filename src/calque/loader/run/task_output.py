"""What a task tells the driver: data files, and what became of each piece that it read."""

from __future__ import annotations

from dataclasses import dataclass

from calque.loader.model.data_file import DataFile
from calque.loader.model.outcome import FileOutcome
from calque.loader.model.plan import Advance
from calque.loader.run.formats.reader import Extent


@dataclass(frozen=True, slots=True)
class JoinInfo:
    """What a piece of a cut file tells for joining it with the others."""

    offset: int
    extent: Extent
    hashes: tuple[bytes, ...] | None = None


NOT_CUT = JoinInfo(0, Extent())
"""Of a file that was not cut: one value for all, since a load may have a hundred thousand."""


@dataclass(frozen=True, slots=True)
class PieceOutcome:
    """What became of a piece; pieces of one file are joined by the engine."""

    outcome: FileOutcome
    join_info: JoinInfo = NOT_CUT
    data_files: tuple[DataFile, ...] = ()
    """Data files that hold rows of this piece alone."""

    @property
    def advance(self) -> Advance:
        """What the piece adds to the progress; a file counts with its first piece."""
        return Advance(self.join_info.offset == 0, self.outcome.rows_loaded, self.outcome.bytes)


@dataclass(frozen=True, slots=True)
class TaskOutput:
    """What a task attempt returns: shared data files, and each piece's outcome."""

    number: int
    data_files: tuple[DataFile, ...]
    pieces: tuple[PieceOutcome, ...]

    @property
    def advance(self) -> Advance:
        return sum((piece.advance for piece in self.pieces), Advance())
