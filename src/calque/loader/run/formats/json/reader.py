"""JSON: a record a line (NDJSON), quick where it is sound; or one array of objects a file."""

from __future__ import annotations

from collections.abc import Iterator

from calque.loader.model.file_formats import JsonFormat
from calque.loader.run.formats import compression
from calque.loader.run.formats.blocks import MAX_RECORD, Block, blocks
from calque.loader.run.formats.byte_buffer import Feed, as_utf8
from calque.loader.run.formats.csv.records import Dialect
from calque.loader.run.formats.json.array import ArrayParser
from calque.loader.run.formats.json.exact import LineParser
from calque.loader.run.formats.json.quick import QuickJson
from calque.loader.run.formats.json.sieve import Sieve
from calque.loader.run.formats.reader import Extent, Parsed, ReadSpec
from calque.loader.run.formats.reject import Code, FileRefused
from calque.loader.run.formats.staged_source import Source
from calque.values import KIB

LINES = Dialect(
    delimiter=b"\0",
    record_delimiter=b"\n",
    quote=None,
    escape=None,
    comment=None,
    skip_blank_lines=True,
)


class JsonReader:
    """Reads one piece of NDJSON, or one file with an array."""

    def __init__(self, source: Source, spec: ReadSpec) -> None:
        assert isinstance(spec.format, JsonFormat)
        self._source = source
        self._spec = spec
        self._format = spec.format
        self._room = spec.keep_errors
        self.extent = Extent()

    def read(self) -> Iterator[Parsed]:
        feed = open_feed(self._source, self._format)
        feed.fill(64 * KIB)
        if self._source.start == 0:
            feed.drop_mark()
        if self._format.strip_outer_array:
            yield from ArrayParser(self._spec, self._source.location).read(feed, self.extent)
            return
        self._begin(feed)
        exact = LineParser(self._spec, self._source.location)
        quick = QuickJson(self._spec, exact.names_of(feed.data))
        stop = None if self._source.end == self._source.size else self._source.end
        sieve = Sieve(quick, exact, self._spec.learned)
        for block in blocks(feed, LINES, stop):
            yield self._parse(block, quick, sieve, exact)

    def _begin(self, feed: Feed) -> None:
        if self._source.start > 0:
            feed.fill(MAX_RECORD)
            cut = feed.data.find(b"\n") + 1
            feed.drop(cut or len(feed.data))
        else:
            refuse_array(self._source, feed)
        self.extent.start = self.extent.end = feed.base

    def _parse(self, block: Block, quick: QuickJson, sieve: Sieve, exact: LineParser) -> Parsed:
        parsed = None
        if quick.can_read(block):
            misled = quick.misled(block)
            if not misled and not self._spec.learned:
                parsed = quick.parse(block, self.extent)
            parsed = parsed or sieve.parse(block, self.extent, self._room, misled)
        if parsed is not None:
            self.extent.lines += parsed.records  # these parsers take one record a line only
        else:
            parsed = exact.parse(block, self.extent, self._room)
            lines = LINES.lines_in(block.data, 0, block.end)
            self.extent.lines += max(lines, 1 if block.broken else 0)
        self._room -= len(parsed.errors)
        self.extent.records += parsed.records
        self.extent.end = block.offset + block.end
        return parsed


def refuse_array(source: Source, feed: Feed) -> None:
    """A file that begins with an array is no NDJSON."""
    if feed.data.lstrip().startswith(b"["):
        raise FileRefused.at(
            source.location,
            Code.NOT_THIS_FORMAT,
            "the file is one JSON array, not a record a line",
            hint="Set STRIP_OUTER_ARRAY = TRUE.",
            line=1,
            byte_offset=feed.base,
        )


def open_feed(source: Source, format: JsonFormat) -> Feed:
    """The plain bytes of a piece."""
    if not source.is_whole:
        return Feed(source.stream(), max(source.start - 1, 0))
    plain = compression.opened(source.location, source.stream(), format.compression)
    return Feed(as_utf8(source.location, plain, "utf-8", replace=False))
