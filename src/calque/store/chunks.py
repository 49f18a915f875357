"""A stream of chunks of any size, read in pieces of the size that is needed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from calque.errors import InvalidInput

Data = bytes | bytearray | memoryview | Iterable[bytes] | Iterable[bytes | memoryview] | BinaryIO
"""What can be uploaded: bytes, chunks, or an open binary file."""

Buffer = bytes | memoryview

_FILE_READ = 1 << 20


class ChunkReader:
    """Reads a source at most once, never further ahead than asked."""

    def __init__(self, data: Data) -> None:
        self._source = _chunks(data)
        self._buffered: deque[memoryview] = deque()
        self._size = 0

    def fill(self, wanted: int) -> int:
        """Buffer up to ``wanted`` bytes; how many are there (fewer only at the end)."""
        while self._size < wanted:
            chunk = next(self._source, None)
            if chunk is None:
                break
            if len(chunk):
                self._buffered.append(memoryview(chunk).cast("B"))
                self._size += self._buffered[-1].nbytes
        return min(self._size, wanted)

    def read(self, wanted: int) -> Buffer:
        """Up to ``wanted`` bytes, without a copy where they lie in one chunk; empty at the end."""
        size = self.fill(wanted)
        if size == 0:
            return b""
        self._size -= size
        first = self._buffered.popleft()
        if first.nbytes >= size:
            self._put_back(first[size:])
            return first[:size]
        return self._join(first, size)

    def skip(self, count: int) -> None:
        """Pass over ``count`` bytes."""
        while count > 0:
            passed = len(self.read(min(count, _FILE_READ)))
            if not passed:
                return
            count -= passed

    def rest(self) -> Iterator[bytes]:
        """Everything that is left, in the chunks in which it comes."""
        while self._buffered:
            held = self._buffered.popleft()
            self._size -= held.nbytes
            yield bytes(held)
        yield from map(bytes, self._source)

    def close(self) -> None:
        """Close the source, where it can be closed: a generator then runs its cleanup."""
        close = getattr(self._source, "close", None)
        if close is not None:
            close()

    def _join(self, first: memoryview, size: int) -> bytes:
        parts, missing = [first], size - first.nbytes
        while missing:
            part = self._buffered.popleft()
            if part.nbytes > missing:
                self._put_back(part[missing:])
                part = part[:missing]
            parts.append(part)
            missing -= part.nbytes
        return b"".join(parts)

    def _put_back(self, rest: memoryview) -> None:
        if rest.nbytes:
            self._buffered.appendleft(rest)


def _chunks(data: Data) -> Iterator[Buffer]:
    if isinstance(data, bytes | bytearray | memoryview):
        return iter((memoryview(data),))
    read = getattr(data, "read", None)
    if read is not None:
        return _only_bytes(iter(lambda: read(_FILE_READ) or b"", b""))
    if not isinstance(data, Iterable):
        raise InvalidInput(
            f"an object is made of bytes, chunks of bytes or an open file, not of "
            f"{type(data).__name__}"
        )
    return _only_bytes(data)


def _only_bytes(chunks: Iterable[object]) -> Iterator[bytes]:
    for chunk in chunks:
        if not isinstance(chunk, bytes | bytearray | memoryview):
            raise InvalidInput(
                f"an object is made of bytes, and {type(chunk).__name__} came: "
                "encode it, or open the file in binary mode"
            )
        yield chunk  # type: ignore[misc]  # every buffer will do
