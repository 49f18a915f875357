"""A stream of delimited text cut into blocks that end where a record ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from calque.loader.run.formats.byte_buffer import Feed
from calque.loader.run.formats.csv.records import Dialect
from calque.loader.run.formats.reject import Code
from calque.values import MIB

BLOCK_SIZE = 4 * MIB
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


def blocks(
    feed: Feed, dialect: Dialect, stop: int | None, size: int = BLOCK_SIZE
) -> Iterator[Block]:
    """Blocks of about ``size``, up to the first record that begins at or after ``stop``."""
    while stop is None or feed.base < stop:
        block = _next(feed, dialect, stop, size)
        if block is None:
            return
        feed.drop(block.end)
        yield block


def _next(feed: Feed, dialect: Dialect, stop: int | None, size: int) -> Block | None:
    wanted = size
    while True:
        feed.fill(wanted)
        if not feed.data:
            return None
        if feed.ended and (stop is None or feed.base + len(feed.data) <= stop):
            return Block(feed.data, len(feed.data), feed.base, True)
        end, paired = _boundary(feed, dialect, stop)
        if end:
            final = feed.ended and end == len(feed.data)
            return Block(feed.data, end, feed.base, final, paired=paired)
        if feed.ended:
            return Block(feed.data, len(feed.data), feed.base, True)
        if len(feed.data) > MAX_RECORD:
            return _oversized(feed, dialect)
        wanted = len(feed.data) + size


def _boundary(feed: Feed, dialect: Dialect, stop: int | None) -> tuple[int, bool]:
    """Where to cut: the first record end at or after ``stop`` if held, else the last one held.

    And whether all quotes before it are sound.
    """
    data = feed.data
    if stop is not None and feed.base + len(data) >= stop:
        return _first_end_from(data, dialect, stop - feed.base)
    return _last_end(data, dialect)


def _last_end(data: bytes, dialect: Dialect) -> tuple[int, bool]:
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


def _first_end_from(data: bytes, dialect: Dialect, position: int) -> tuple[int, bool]:
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


def _oversized(feed: Feed, dialect: Dialect) -> Block:
    """A record past the limit: an open quote costs its line, an endless line costs itself."""
    first = feed.data.find(dialect.record_delimiter)
    if first >= 0:
        return Block(feed.data, first + len(dialect.record_delimiter), feed.base, True)
    return _endless(feed, dialect)


def _endless(feed: Feed, dialect: Dialect) -> Block:
    """Pass over a record without an end, holding only its beginning."""
    delimiter = dialect.record_delimiter
    head, offset, length = feed.data[:4096], feed.base, 0
    while True:
        found = feed.data.find(delimiter)
        if found >= 0:
            feed.drop(found + len(delimiter))
            return Block(head, 0, offset, False, Code.RECORD_TOO_LONG)
        if feed.ended:
            feed.drop(len(feed.data))
            return Block(head, 0, offset, True, Code.RECORD_TOO_LONG)
        keep = len(delimiter) - 1
        length = len(feed.data) - keep
        feed.drop(length)
        feed.fill(BLOCK_SIZE)
