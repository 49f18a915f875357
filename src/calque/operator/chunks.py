"""What may be written: bytes, an iterable of bytes, or a file; always read as chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO, Protocol, runtime_checkable

from calque.errors import InvalidInput
from calque.values import MIB

_READ = 1 * MIB


@runtime_checkable
class Readable(Protocol):
    """A binary file, as far as a write needs one."""

    def read(self, size: int, /) -> bytes: ...


Data = bytes | bytearray | memoryview | Iterable[bytes] | BinaryIO | Readable


def chunks_of(data: Data) -> tuple[Iterable[bytes], int | None]:
    """The chunks of what is to be written, and their total size where that is known."""
    if isinstance(data, str):
        raise InvalidInput("text cannot be written as it is", hint="Encode it: text.encode().")
    if isinstance(data, bytes | bytearray | memoryview):
        whole = bytes(data)
        return ((whole,) if whole else ()), len(whole)
    if isinstance(data, Readable):
        return _of_file(data), None
    if isinstance(data, Iterable):
        return _of_iterable(data), None
    raise InvalidInput(f"cannot write {type(data).__name__}: bytes, chunks or a file are needed")


def regroup(chunks: Iterable[bytes], size: int) -> Iterator[bytes]:
    """The same bytes in pieces of exactly ``size``, the last one shorter and never empty."""
    held = bytearray()
    for chunk in chunks:
        if not held and len(chunk) == size:
            yield chunk
            continue
        held += chunk
        while len(held) >= size:
            yield bytes(held[:size])
            del held[:size]
    if held:
        yield bytes(held)


def _of_file(file: Readable) -> Iterator[bytes]:
    while chunk := file.read(_READ):
        yield _bytes(chunk)


def _of_iterable(chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        if whole := _bytes(chunk):
            yield whole


def _bytes(chunk: object) -> bytes:
    if not isinstance(chunk, bytes | bytearray | memoryview):
        raise InvalidInput(f"a chunk to write must be bytes, not {type(chunk).__name__}")
    return bytes(chunk)
