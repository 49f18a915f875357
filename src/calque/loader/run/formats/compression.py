"""Compressed files: named by extension, proved by their first bytes, refused where in doubt."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Protocol

import pyarrow as pa

from calque.loader.model.file_formats import Compression
from calque.loader.run.formats.refusal import Code, FileRefused
from calque.values import MIB

_BY_EXTENSION: dict[str, Compression] = {
    ".gz": "gzip",
    ".gzip": "gzip",
    ".zst": "zstd",
    ".zstd": "zstd",
    ".bz2": "bz2",
    ".xz": "xz",
}
_UNKNOWN = (".br", ".lz4", ".sz", ".snappy", ".lzo", ".lzma", ".z", ".zip", ".7z", ".rar", ".tar")
_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"BZh", "bz2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"PK\x03\x04", "zip"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"\xff\x06\x00\x00sNaPpY", "snappy"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"Rar!", "rar"),
)
_KNOWN = ("gzip", "zstd", "bz2", "xz")
MAGIC_LENGTH = 16
PIECE = 1 * MIB
"""Plain bytes that are made at a time: a hostile kilobyte may hold a gigabyte of zeros."""


def compression_by_name(name: str) -> Compression | None:
    """The compression that a file's extension states, None for one we cannot read."""
    lower = name.lower()
    for extension, compression in _BY_EXTENSION.items():
        if lower.endswith(extension):
            return compression
    return None if lower.endswith(_UNKNOWN) else "none"


def detect(location: str, head: bytes, wanted: Compression) -> Compression:
    """The compression of a file, by the option, its name and its first bytes, which must agree.

    A file that says nothing by its name is believed by its bytes; one that says the wrong thing,
    or one compressed in a way that is not known here, is refused.
    """
    stated = compression_by_name(location) if wanted == "auto" else wanted
    found = next((kind for magic, kind in _MAGIC if head.startswith(magic)), "none")
    if stated is None or (found not in _KNOWN and found != "none"):
        kind = found if found != "none" else location.rpartition(".")[2]
        raise FileRefused.at(
            location,
            Code.WRONG_COMPRESSION,
            f"files compressed as {kind} cannot be read",
            hint=f"Compress as one of {', '.join(_KNOWN)}, or not at all.",
        )
    if not head or (wanted == "auto" and stated == "none" and found in _KNOWN):
        return found if head else "none"  # type: ignore[return-value]
    if found != stated:
        raise FileRefused.at(
            location,
            Code.WRONG_COMPRESSION,
            f"expected {stated} by {'name' if wanted == 'auto' else 'option'}, "
            f"but its first bytes say {found}",
            hint="Name the compression that the file has, or rename the file.",
        )
    return stated


class Decompressor(Protocol):
    """One compressed member: what the standard library's decompressors have in common."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


_OPEN: dict[str, Callable[[], Decompressor]] = {
    "gzip": lambda: zlib.decompressobj(wbits=31),
    "bz2": bz2.BZ2Decompressor,
    "xz": lzma.LZMADecompressor,
}


def open_stream(location: str, chunks: Iterator[bytes], wanted: Compression) -> Iterator[bytes]:
    """The plain bytes of a file; its beginning is looked at as it comes, not read twice."""
    head, rest = _peek(chunks)
    return decompress(location, rest, detect(location, head, wanted))


def _peek(chunks: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    head = b""
    for chunk in chunks:
        head += chunk
        if len(head) >= MAGIC_LENGTH:
            break
    return head[:MAGIC_LENGTH], chain((head,) if head else (), chunks)


def decompress(location: str, chunks: Iterator[bytes], kind: Compression) -> Iterator[bytes]:
    """The plain bytes of a compressed stream of one or more members."""
    if kind == "none":
        return chunks
    if kind == "zstd":
        return _decompress_zstd(location, chunks)
    return _decompress_members(location, chunks, _OPEN[kind])


def _decompress_members(
    location: str, chunks: Iterator[bytes], open_member: Callable[[], Decompressor]
) -> Iterator[bytes]:
    member: Decompressor | None = None
    offset = 0
    for chunk in chunks:
        rest = chunk
        while rest:
            member = member or open_member()
            try:
                yield from _inflate(member, rest)
            except (zlib.error, OSError, lzma.LZMAError, EOFError) as error:
                raise _damage_error(location, offset, str(error)) from error
            rest = b""
            if member.eof:
                # Some tools pad with zeros; what follows them is another member.
                rest, member = member.unused_data.lstrip(b"\0"), None
        offset += len(chunk)
    if member is not None:
        raise _truncation_error(location, offset)


def _inflate(member: Decompressor, data: bytes) -> Iterator[bytes]:
    """What a member makes of some bytes, piece by piece: a kilobyte can hold a gigabyte."""
    while plain := member.decompress(data, PIECE):
        yield plain
        if member.eof:
            return
        data = getattr(member, "unconsumed_tail", b"")  # zlib gives it back, others keep it


def _decompress_zstd(location: str, chunks: Iterator[bytes]) -> Iterator[bytes]:
    counted = _ChunkFile(chunks)
    stream = pa.CompressedInputStream(pa.PythonFile(counted, mode="r"), "zstd")
    while True:
        try:
            plain = stream.read(1 << 20)
        except OSError as error:
            if counted.error is not None:
                raise counted.error from None
            if counted.ended:
                raise _truncation_error(location, counted.offset) from error
            raise _damage_error(location, counted.offset, str(error)) from error
        if not plain:
            return
        yield plain


class _ChunkFile:
    """Chunks as a file object for pyarrow; keeps an error of the source, which Arrow would hide."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._buffer = b""
        self.offset = 0
        self.ended = False
        self.closed = False
        self.error: Exception | None = None

    def read(self, size: int) -> bytes:
        while len(self._buffer) < size and not self.ended:
            try:
                self._buffer += next(self._chunks)
            except StopIteration:
                self.ended = True
            except Exception as error:
                self.error = error
                raise
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        self.offset += len(data)
        return data

    def close(self) -> None:
        self.closed = True


def _truncation_error(location: str, offset: int) -> FileRefused:
    return FileRefused.at(
        location,
        Code.TRUNCATED,
        f"the compressed file ends too early, at byte {offset}",
        hint="The upload was cut off: stage the file again.",
        byte_offset=offset,
    )


def _damage_error(location: str, offset: int, why: str) -> FileRefused:
    return FileRefused.at(
        location,
        Code.MALFORMED,
        f"the compressed file is damaged after byte {offset}: {why}",
        hint="Stage the file again.",
        byte_offset=offset,
    )
