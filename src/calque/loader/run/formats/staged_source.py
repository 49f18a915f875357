"""One staged file, or a range of one, as a task reads it: pinned, counted and hashed."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

from calque.errors import CalqueError, ConditionNotMatch, IsADirectory, NotFound
from calque.loader.model.content_hash import ContentHash
from calque.loader.model.plan import Piece
from calque.loader.model.staged_file import StagedFile
from calque.operator import Operator
from calque.values import KIB, MIB

if TYPE_CHECKING:
    from typing_extensions import Buffer

_BEYOND = 64 * KIB
"""Read behind a piece at first, with the same request: nearly every last record ends in it."""


class Source:
    """The bytes of a piece. Reads are pinned by etag and version where the service can.

    :meth:`stream` gives a piece's own bytes and then, for as long as it is asked, those that follow
    it, since the last record of a piece may end in the next one. Only own bytes are hashed.
    """

    def __init__(self, operator: Operator, path: str, piece: Piece) -> None:
        self._operator = operator
        self._path = path
        self.file: StagedFile = piece.file
        self.size = piece.file.identity.size
        self.start = piece.offset
        self.begin = piece.begin
        self.end = self.size if piece.length is None else piece.offset + piece.length
        self._hash = ContentHash()
        self._hashed = self.start
        self.bytes_read = 0
        self.failure: CalqueError | None = None
        """What went wrong in reading the bytes, for when a library has hidden it."""

    @property
    def is_whole(self) -> bool:
        return self.start == 0 and self.end == self.size

    @property
    def location(self) -> str:
        return self.file.location

    def stream(self) -> Iterator[bytes]:
        """Bytes from ``start`` (for a later piece: from one byte before it) to the file's end."""
        position = max(self.start - 1, 0)
        stop = self.size if self.end == self.size else min(self.end + _BEYOND, self.size)
        while True:
            for chunk in self._read(position, stop - position):
                self._count(chunk, position)
                position += len(chunk)
                yield chunk
            if position != stop:
                self.failure = ConditionNotMatch(
                    f"{self.location} has {position} bytes now, not {self.size}: it has changed"
                )
                raise self.failure
            if stop == self.size:
                return
            stop = min(stop + MIB, self.size)

    def head(self, length: int) -> bytes:
        """The first bytes of the file, whichever piece this is; they are not counted."""
        return b"".join(self._read(0, min(length, self.size)))

    def open(self) -> RangeFile:
        """The whole file for readers that seek (Parquet, ORC)."""
        return RangeFile(self)

    def open_stream(self) -> io.BufferedReader:
        """The whole file for readers that go from beginning to end (Avro)."""
        return io.BufferedReader(StreamFile(self.stream()), 4 * MIB)

    def read_at(self, offset: int, length: int) -> bytes:
        data = b"".join(self._read(offset, length))
        self.bytes_read += len(data)
        return data

    def finish_hash(self) -> None:
        """Read for the hash what no stream has read: readers that seek leave all of it to this.

        Without the hash, a file that was merely touched would count as changed.
        """
        for chunk in self._read(self._hashed, self.end - self._hashed):
            self._hash.update(chunk)
            self._hashed += len(chunk)

    def hashes(self) -> tuple[bytes, ...] | None:
        """The block hashes of the piece; None where not every byte of it was read in order."""
        return self._hash.blocks() if self._hashed == self.end else None

    def _count(self, chunk: bytes, position: int) -> None:
        self.bytes_read += len(chunk)
        if position + len(chunk) <= self._hashed or self._hashed >= self.end:
            return
        own = memoryview(chunk)[self._hashed - position : self.end - position]
        self._hash.update(own)
        self._hashed += len(own)

    def _read(self, offset: int, length: int) -> Iterator[bytes]:
        if length <= 0:
            return
        can = self._operator.capability
        identity = self.file.identity
        try:
            yield from self._operator.read_stream(
                self._path,
                offset=offset,
                length=length,
                if_match=identity.pin if can.read_with_if_match else None,
                version=identity.version if can.read_with_version else None,
            )
        except NotFound as error:
            self.failure = NotFound(f"{self.location} has vanished since it was listed")
            raise self.failure from error
        except IsADirectory as error:
            self.failure = ConditionNotMatch(f"{self.location} is a folder now: it has changed")
            raise self.failure from error
        except CalqueError as error:
            self.failure = error
            raise


class RangeFile(io.RawIOBase):
    """A seekable file over ranged reads, for libraries that want one."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._source.size}
        self._position = max(0, base[whence] + offset)
        return self._position

    def tell(self) -> int:
        return self._position

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._source.size - self._position)
        length = left if size is None or size < 0 else min(size, left)
        data = self._source.read_at(self._position, length) if length else b""
        self._position += len(data)
        return data

    def readall(self) -> bytes:
        return self.read()

    def size(self) -> int:
        return self._source.size


class StreamFile(io.RawIOBase):
    """Chunks as a file that is read once from its beginning."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")
        self._position = 0

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: Buffer) -> int:
        target = memoryview(buffer).cast("B")
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        taken = self._rest[: len(target)]
        target[: len(taken)] = taken
        self._rest = self._rest[len(taken) :]
        self._position += len(taken)
        return len(taken)
