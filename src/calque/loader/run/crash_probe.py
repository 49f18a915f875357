"""Whether a library survives a file, found out in a process that may go down over it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from functools import partial

from calque.errors import CalqueError
from calque.loader.model.plan import Piece
from calque.loader.run.formats.guard import refuse_crash
from calque.loader.run.formats.reader import ReadSpec
from calque.loader.run.formats.registry import CRASH_PRONE, open_reader
from calque.loader.run.formats.staged_source import Source
from calque.loader.run.operators import Operators
from calque.loader.run.workers.process import WorkerCrashed, WorkerProcess

_TRIES = 2
"""One crash may have another cause; after the second it is the file."""


def refuse_crashing_file(
    piece: Piece, spec: ReadSpec, source_options: Mapping[str, object]
) -> None:
    """FileRefused where reading the file brings a process down; nothing for formats that are safe.

    The file is read twice then, for rows that must come out of this very process.
    """
    if spec.format.kind not in CRASH_PRONE:
        return
    for attempt in range(_TRIES):
        process = WorkerProcess(partial(_read_through, spec, dict(source_options)))
        try:
            process.run(piece, about=piece.file.location)
        except WorkerCrashed as error:
            if attempt == _TRIES - 1:
                raise refuse_crash(piece.file.location, error) from error
        except CalqueError:
            return  # whatever else is wrong with it, the reader itself will tell
        else:
            return
        finally:
            process.stop()


def _read_through(spec: ReadSpec, source_options: Mapping[str, object], piece: Piece) -> None:
    with closing(Operators(source_options)) as operators:
        source = Source(*operators.at(piece.file.location), piece)
        for _ in open_reader(source, spec).read():
            pass
