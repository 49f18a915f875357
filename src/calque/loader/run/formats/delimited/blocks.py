"""A stream of delimited text cut into blocks that end where a record ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from calque.loader.run.formats.byte_buffer import ByteBuffer
from calque.loader.run.formats.delimited.dialect import Dialect
from calque.loader.run.formats.refusal import Code
from calque.values import MIB

BLOCK_SIZE = 4 * MIB
"""What is parsed at once: enough that pyarrow's cost of a call vanishes, little enough that a
block with one bad record is soon read again record by record."""
MAX_RECORD = 16 * MIB
"""A longer record is refused: it is a wrong delimiter or a broken quote, not data."""


@dataclass(frozen=True, slots=True)
class Block:
    """Whole records: ``data[:end]``, which begins at ``offset`` in the stream.

    ``final``: nothing follows, or the block could not be cut soundly; its last record counts as
    complete. ``broken``: the block is one record that is refused as a whole.
    """

    data: bytes
    end: int
    offset: int
    final: bool
    broken: Code | None = None
    paired: bool = False
    """Its quotes are known to open and close fields by turns."""


def cut_blocks(
    buffer: ByteBuffer, dialect: Dialect, stop: int | None, size: int = BLOCK_SIZE
) -> Iterator[Block]:
    """Blocks of about ``size``, up to the first record that begins at or after ``stop``."""
    while stop is None or buffer.base < stop:
        block = _next_block(buffer, dialect, stop, size)
        if block is None:
            return
        buffer.drop(block.end)
        yield block


def _next_block(buffer: ByteBuffer, dialect: Dialect, stop: int | None, size: int) -> Block | None:
    wanted = size
    while True:
        buffer.fill(wanted)
        if not buffer.data:
            return None
        if buffer.ended and (stop is None or buffer.base + len(buffer.data) <= stop):
            return Block(buffer.data, len(buffer.data), buffer.base, True)
        end, paired = _find_boundary(buffer, dialect, stop)
        if end:
            final = buffer.ended and end == len(buffer.data)
            return Block(buffer.data, end, buffer.base, final, paired=paired)
        if buffer.ended:
            return Block(buffer.data, len(buffer.data), buffer.base, True)
        if len(buffer.data) > MAX_RECORD:
            return _oversized_block(buffer, dialect)
        wanted = len(buffer.data) + size


def _find_boundary(buffer: ByteBuffer, dialect: Dialect, stop: int | None) -> tuple[int, bool]:
    """Where to cut: the first record end at or after ``stop`` if held, else the last one held.

    And whether all quotes before it are sound.
    """
    data = buffer.data
    if stop is not None and buffer.base + len(data) >= stop:
        return _find_first_end(data, dialect, stop - buffer.base)
    return _find_last_end(data, dialect)


def _find_last_end(data: bytes, dialect: Dialect) -> tuple[int, bool]:
    delimiter = dialect.record_delimiter
    found = data.rfind(delimiter)
    if found < 0:
        return 0, False
    end = found + len(delimiter)
    if _is_outside(data, end, dialect):
        return end, True
    last = 0
    for record in dialect.records(data, 0, final=False):
        last = record.end
    return last, False


def _find_first_end(data: bytes, dialect: Dialect, position: int) -> tuple[int, bool]:
    delimiter = dialect.record_delimiter
    found = data.find(delimiter, max(0, position - len(delimiter)))
    if found < 0:
        return 0, False
    end = found + len(delimiter)
    if _is_outside(data, end, dialect):
        return end, True
    for record in dialect.records(data, 0, final=False):
        if record.end >= position:
            return record.end, False
    return 0, False


def _is_outside(data: bytes, end: int, dialect: Dialect) -> bool:
    """Whether ``end`` is surely outside of quotes; in doubt records are read one by one."""
    if dialect.escapes_in(data, end):
        return False
    if dialect.quote is None or data.find(dialect.quote, 0, end) < 0:
        return True
    return dialect.is_plain and dialect.quotes_pair(data, end)


def _oversized_block(buffer: ByteBuffer, dialect: Dialect) -> Block:
    """A record past the limit: an open quote costs its line, an endless line costs itself."""
    first = buffer.data.find(dialect.record_delimiter)
    if first >= 0:
        return Block(buffer.data, first + len(dialect.record_delimiter), buffer.base, True)
    return _skip_endless_record(buffer, dialect)


def _skip_endless_record(buffer: ByteBuffer, dialect: Dialect) -> Block:
    """Pass over a record without an end, holding only its beginning."""
    delimiter = dialect.record_delimiter
    head, offset, length = buffer.data[:4096], buffer.base, 0
    while True:
        found = buffer.data.find(delimiter)
        if found >= 0:
            buffer.drop(found + len(delimiter))
            return Block(head, 0, offset, False, Code.RECORD_TOO_LONG)
        if buffer.ended:
            buffer.drop(len(buffer.data))
            return Block(head, 0, offset, True, Code.RECORD_TOO_LONG)
        keep = len(delimiter) - 1  # a delimiter may be cut in two by what has arrived so far
        length = len(buffer.data) - keep
        buffer.drop(length)
        buffer.fill(BLOCK_SIZE)
