"""A piece of a staged file as a buffer of plain UTF-8 text."""

from __future__ import annotations

from calque.loader.model.file_formats import Compression
from calque.loader.run.formats import compression
from calque.loader.run.formats.byte_buffer import ByteBuffer, as_utf8
from calque.loader.run.formats.staged_source import Source


def open_buffer(
    source: Source, packed: Compression, encoding: str | None = None, *, replace: bool = False
) -> ByteBuffer:
    """The text of a piece. ``replace``: what is not in the encoding is replaced, not refused.

    ``encoding``: None of a format that is always in UTF-8.
    """
    if not source.is_whole:
        # Only plain UTF-8 is ever cut. A later piece begins one byte early: whether a record ends
        # right before it shows in that byte alone.
        return ByteBuffer(source.stream(), max(source.start - 1, 0))
    plain = compression.open_stream(source.location, source.stream(), packed)
    return ByteBuffer(as_utf8(source.location, plain, encoding, replace=replace))
