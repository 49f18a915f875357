"""A stream of bytes as a buffer that is filled and taken from, and its encoding made UTF-8."""

from __future__ import annotations

import codecs
from collections.abc import Iterator

from calque.errors import InvalidInput
from calque.loader.run.formats.refusal import Code, FileRefused

_FOREIGN_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class ByteBuffer:
    """Bytes that arrive in chunks. ``data[0]`` stands at ``base`` in the stream."""

    def __init__(self, chunks: Iterator[bytes], base: int = 0) -> None:
        self._chunks = chunks
        self.data = b""
        self.base = base
        self.ended = False

    def fill(self, size: int) -> None:
        """Have at least ``size`` bytes, or all there are."""
        if len(self.data) >= size or self.ended:
            return
        parts, held = [self.data], len(self.data)
        while held < size:
            chunk = next(self._chunks, None)
            if chunk is None:
                self.ended = True
                break
            parts.append(chunk)
            held += len(chunk)
        self.data = b"".join(parts)

    def drop(self, length: int) -> None:
        """Forget the first bytes."""
        self.data = self.data[length:]
        self.base += length

    def drop_to(self, position: int) -> None:
        """Forget everything before a position of the stream."""
        while self.base < position:
            self.fill(1)
            if not self.data:
                return
            self.drop(min(len(self.data), position - self.base))

    def drop_mark(self) -> None:
        """Forget a byte order mark at the beginning of the stream."""
        self.fill(len(codecs.BOM_UTF8))
        if self.data.startswith(codecs.BOM_UTF8):
            self.drop(len(codecs.BOM_UTF8))


def as_utf8(
    location: str, chunks: Iterator[bytes], encoding: str | None, *, replace: bool
) -> Iterator[bytes]:
    """The stream in UTF-8; a byte order mark is left for :meth:`ByteBuffer.drop_mark`.

    ``encoding``: None of a format that is always in UTF-8.

    A file that is plainly in another encoding than stated (UTF-16 read as UTF-8) is refused with
    its name, since every field of it would be garbage.
    """
    if encoding is None or is_utf8(encoding):
        return _pass_utf8(location, chunks, can_differ=encoding is not None)
    return _transcode(location, chunks, encoding, "replace" if replace else "strict")


def is_utf8(encoding: str) -> bool:
    """Whether bytes can be read as they are; an unknown encoding is InvalidInput."""
    try:
        return codecs.lookup(encoding).name in ("utf-8", "utf-8-sig", "ascii")
    except LookupError as error:
        raise InvalidInput(
            f"there is no encoding {encoding!r}", hint="For example utf-8, utf-16, latin-1, cp1252."
        ) from error


def is_valid_utf8(data: bytes) -> bool:
    """Whether these bytes are UTF-8; for ASCII, the usual case, nothing is decoded."""
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _pass_utf8(location: str, chunks: Iterator[bytes], *, can_differ: bool) -> Iterator[bytes]:
    first = b""
    for chunk in chunks:
        first += chunk
        if len(first) >= 4:
            break
    _refuse_foreign(location, first, can_differ=can_differ)
    if first:
        yield first
    yield from chunks


def _refuse_foreign(location: str, head: bytes, *, can_differ: bool) -> None:
    found = next((name for mark, name in _FOREIGN_MARKS if head.startswith(mark)), None)
    if found is None and b"\0" in head[:4] and len(head) >= 4:
        found = "utf-16-le" if head[1] == 0 else "utf-16-be"
    if found is not None:
        say = f"Say so: --encoding {found} (ENCODING)."
        raise FileRefused.at(
            location,
            Code.INVALID_ENCODING,
            f"the file is in {found.upper()}, not in UTF-8",
            hint=say if can_differ else "The format is always in UTF-8: convert the file.",
            line=1,
            byte_offset=0,
        )


def _transcode(
    location: str, chunks: Iterator[bytes], encoding: str, errors: str
) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    offset, line = 0, 1
    for chunk in _with_end_mark(chunks):
        try:
            text = decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            raise FileRefused.at(
                location,
                Code.INVALID_ENCODING,
                f"byte {offset + error.start} is not {encoding}: {error.reason}",
                hint="Name the encoding of the file, or set REPLACE_INVALID_CHARACTERS.",
                line=line,
                byte_offset=offset + error.start,
            ) from error
        offset += len(chunk)
        line += text.count("\n")
        if text:
            yield text.encode("utf-8", "replace")


def _with_end_mark(chunks: Iterator[bytes]) -> Iterator[bytes]:
    yield from chunks
    yield b""
