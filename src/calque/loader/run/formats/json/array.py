"""A file that is one JSON array of objects, or objects over several lines: read one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count

from calque.loader.run.formats.byte_buffer import ByteBuffer
from calque.loader.run.formats.delimited.blocks import MAX_RECORD
from calque.loader.run.formats.json.exact import ExactParser, RawRecord
from calque.loader.run.formats.reader import Extent, ParsedBatch, ReadSpec
from calque.loader.run.formats.refusal import Code, FileRefused
from calque.values import MIB

_ROWS = 10_000
_SPACE = re.compile(rb"[ \t\r\n]*")
_MARK = re.compile(rb'[{}"]')
_STRING = re.compile(rb'(?:[^"\\]|\\.)*"', re.DOTALL)


class ArrayParser:
    """Reads objects that stand in an array or simply one after the other."""

    def __init__(self, spec: ReadSpec, file: str) -> None:
        self._file = file
        self._room = spec.keep_errors
        self._exact = ExactParser(spec, file)
        self._position = 0

    def read(self, buffer: ByteBuffer, extent: Extent) -> Iterator[ParsedBatch]:
        batch: list[RawRecord] = []
        for found in self.objects(buffer, extent):
            batch.append(found)
            if len(batch) >= _ROWS:
                yield self._parse(batch, extent)
                batch = []
        if batch:
            yield self._parse(batch, extent)

    def objects(self, buffer: ByteBuffer, extent: Extent) -> Iterator[RawRecord]:
        """Each object as it stands there."""
        extent.lines = 1
        self._skip_space(buffer, extent)
        in_array = buffer.data.startswith(b"[", self._position)
        if in_array:
            self._position += 1
        for number in count():
            self._skip_space(buffer, extent)
            if self._position == len(buffer.data) and not in_array:
                return
            if in_array and buffer.data.startswith(b"]", self._position):
                self._end_array(buffer, extent)
                return
            if in_array and number:
                self._pass_comma(buffer, extent)
            end = self._object_end(buffer, extent)
            raw = buffer.data[self._position : end]
            yield RawRecord(extent.lines, buffer.base + self._position, raw)
            extent.lines += raw.count(b"\n")
            self._position = end

    def _pass_comma(self, buffer: ByteBuffer, extent: Extent) -> None:
        if not buffer.data.startswith(b",", self._position):
            cut = self._position == len(buffer.data)
            code, why = (Code.TRUNCATED, "cut off") if cut else (Code.MALFORMED, "malformed")
            raise self._error_here(
                buffer, extent, code, f"the JSON is {why}: a comma or ] is expected"
            )
        self._position += 1
        self._skip_space(buffer, extent)

    def _end_array(self, buffer: ByteBuffer, extent: Extent) -> None:
        self._position += 1
        self._skip_space(buffer, extent)
        if self._position < len(buffer.data):
            raise self._error_here(
                buffer, extent, Code.MALFORMED, "the file goes on after its array"
            )

    def _object_end(self, buffer: ByteBuffer, extent: Extent) -> int:
        wanted = MIB
        while True:
            end = object_end(buffer.data, self._position)
            if end:
                return end
            if buffer.ended or len(buffer.data) - self._position > MAX_RECORD:
                raise self._object_error(buffer, extent)
            self._fill_more(buffer, wanted)
            wanted *= 2

    def _object_error(self, buffer: ByteBuffer, extent: Extent) -> FileRefused:
        if self._position < len(buffer.data) and not buffer.data.startswith(b"{", self._position):
            return self._error_here(buffer, extent, Code.MALFORMED, "an object is expected here")
        code = Code.TRUNCATED if buffer.ended else Code.RECORD_TOO_LONG
        return self._error_here(buffer, extent, code, "the JSON is cut off or malformed from here")

    def _error_here(
        self, buffer: ByteBuffer, extent: Extent, code: Code, message: str
    ) -> FileRefused:
        rest = buffer.data[self._position : self._position + 256]
        offset = buffer.base + self._position
        return FileRefused.at(
            self._file, code, message, line=extent.lines, byte_offset=offset, raw=rest
        )

    def _skip_space(self, buffer: ByteBuffer, extent: Extent) -> None:
        while True:
            match = _SPACE.match(buffer.data, self._position)
            assert match is not None
            extent.lines += buffer.data.count(b"\n", self._position, match.end())
            self._position = match.end()
            if self._position < len(buffer.data) or buffer.ended:
                return
            self._fill_more(buffer, MIB)

    def _fill_more(self, buffer: ByteBuffer, size: int) -> None:
        """Forget what was read and have ``size`` bytes more."""
        buffer.drop(self._position)
        self._position = 0
        buffer.fill(len(buffer.data) + size)

    def _parse(self, batch: list[RawRecord], extent: Extent) -> ParsedBatch:
        parsed = self._exact.read(range(len(batch)), batch, extent.records, len(batch), self._room)
        extent.records += len(batch)
        self._room -= len(parsed.errors)
        return parsed


def object_end(data: bytes, start: int) -> int:
    """Where the object that begins at ``start`` ends; 0 if it is not all there."""
    if not data.startswith(b"{", start):
        return 0
    depth, position = 0, start
    while True:
        found = _MARK.search(data, position)
        if found is None:
            return 0
        position = found.end()
        if found.group() == b'"':
            string = _STRING.match(data, position)
            if string is None:
                return 0
            position = string.end()
            continue
        depth += 1 if found.group() == b"{" else -1
        if depth == 0:
            return position
