"""The edge between the formats and the rest: what leaves it is an error of ours.

A staged file may make any library stumble in any way. Whatever it raises means that this one file
cannot be read; it must not end a statement that loads others.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from calque.errors import CalqueError, is_panic
from calque.loader.run.formats.reader import ParsedBatch, Reader
from calque.loader.run.formats.refusal import Code, FileRefused
from calque.loader.run.formats.staged_source import Source


@contextmanager
def refuse_on_error(source: Source, kind: str) -> Iterator[None]:
    """Any error inside refuses the file; one that the source raised comes out as it was.

    Libraries hide errors of the files that they are given, or take them for damage.
    """
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        if source.failure is not None:
            raise source.failure from None
        if isinstance(error, CalqueError):
            raise
        raise FileRefused.at(
            source.location,
            Code.MALFORMED,
            f"cannot be read as {kind.upper()}: {first_line(error)}",
            hint="Name the format that the file has, or stage it again if it is damaged.",
        ) from error


def refuse_crash(location: str, why: CalqueError) -> FileRefused:
    """The refusal of a file over which a library brought its process down."""
    return FileRefused.at(
        location,
        Code.MALFORMED,
        f"the library that reads it crashed over it, so it must be damaged: {why.message}",
    )


class GuardedReader:
    """A reader whose every error is one of ours."""

    def __init__(self, reader: Reader, source: Source, kind: str) -> None:
        self._reader = reader
        self._source = source
        self._kind = kind
        self.extent = reader.extent

    def read(self) -> Iterator[ParsedBatch]:
        with refuse_on_error(self._source, self._kind):
            yield from self._reader.read()


def first_line(error: BaseException) -> str:
    """What an error says, without the trace that some libraries put into their messages."""
    told = str(error).strip().partition("\n")[0]
    return told or type(error).__name__
