"""A file that is one JSON array of objects, or objects over several lines: read one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count

from calque.loader.model.outcome import RowError
from calque.loader.run.formats.blocks import MAX_RECORD
from calque.loader.run.formats.byte_buffer import Feed
from calque.loader.run.formats.json.exact import LineParser, Malformed, Row, load_object
from calque.loader.run.formats.reader import Extent, Parsed, ReadSpec
from calque.loader.run.formats.reject import Code, FileRefused
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
        self._lines = LineParser(spec, file)
        self._at = 0

    def read(self, feed: Feed, extent: Extent) -> Iterator[Parsed]:
        batch: list[tuple[int, int, bytes]] = []
        for place in self.objects(feed, extent):
            batch.append(place)
            if len(batch) >= _ROWS:
                yield self._parsed(batch, extent)
                batch = []
        if batch:
            yield self._parsed(batch, extent)

    def objects(self, feed: Feed, extent: Extent) -> Iterator[tuple[int, int, bytes]]:
        """Line, offset and bytes of each object."""
        extent.lines = 1
        self._skip(feed, extent)
        in_array = feed.data.startswith(b"[", self._at)
        if in_array:
            self._at += 1
        for number in count():
            self._skip(feed, extent)
            if self._at == len(feed.data) and not in_array:
                return
            if in_array and feed.data.startswith(b"]", self._at):
                self._end(feed, extent)
                return
            if in_array and number:
                self._pass_comma(feed, extent)
            end = self._object_end(feed, extent)
            raw = feed.data[self._at : end]
            yield extent.lines, feed.base + self._at, raw
            extent.lines += raw.count(b"\n")
            self._at = end

    def _pass_comma(self, feed: Feed, extent: Extent) -> None:
        if not feed.data.startswith(b",", self._at):
            cut = self._at == len(feed.data)
            code, why = (Code.TRUNCATED, "cut off") if cut else (Code.MALFORMED, "malformed")
            raise self._wrong(feed, extent, code, f"the JSON is {why}: a comma or ] is expected")
        self._at += 1
        self._skip(feed, extent)

    def _end(self, feed: Feed, extent: Extent) -> None:
        self._at += 1
        self._skip(feed, extent)
        if self._at < len(feed.data):
            raise self._wrong(feed, extent, Code.MALFORMED, "the file goes on after its array")

    def _object_end(self, feed: Feed, extent: Extent) -> int:
        wanted = MIB
        while True:
            end = object_end(feed.data, self._at)
            if end:
                return end
            if feed.ended or len(feed.data) - self._at > MAX_RECORD:
                raise self._refused(feed, extent)
            self._more(feed, wanted)
            wanted *= 2

    def _refused(self, feed: Feed, extent: Extent) -> FileRefused:
        if self._at < len(feed.data) and not feed.data.startswith(b"{", self._at):
            return self._wrong(feed, extent, Code.MALFORMED, "an object is expected here")
        code = Code.TRUNCATED if feed.ended else Code.RECORD_TOO_LONG
        return self._wrong(feed, extent, code, "the JSON is cut off or malformed from here")

    def _wrong(self, feed: Feed, extent: Extent, code: Code, message: str) -> FileRefused:
        rest = feed.data[self._at : self._at + 256]
        offset = feed.base + self._at
        return FileRefused.at(
            self._file, code, message, line=extent.lines, byte_offset=offset, raw=rest
        )

    def _skip(self, feed: Feed, extent: Extent) -> None:
        while True:
            match = _SPACE.match(feed.data, self._at)
            assert match is not None
            extent.lines += feed.data.count(b"\n", self._at, match.end())
            self._at = match.end()
            if self._at < len(feed.data) or feed.ended:
                return
            self._more(feed, MIB)

    def _more(self, feed: Feed, size: int) -> None:
        """Forget what was read and have ``size`` bytes more."""
        feed.drop(self._at)
        self._at = 0
        feed.fill(len(feed.data) + size)

    def _parsed(self, batch: list[tuple[int, int, bytes]], extent: Extent) -> Parsed:
        objects: list[Row] = []
        origin: list[int] = []
        places: list[tuple[int, int, bytes]] = []
        errors: dict[int, RowError | None] = {}
        for index, place in enumerate(batch):
            try:
                objects.append(self._lines.row(load_object(place[2], self._lines.fills)))
            except Malformed as wrong:
                described = len(errors) < self._room
                record = extent.records + index
                errors[index] = self._lines.wrong(wrong, place, record) if described else None
                continue
            origin.append(index)
            places.append(place)
        parsed = self._lines.shaped(
            objects, origin, places, extent.records, len(batch), errors, self._room
        )
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
