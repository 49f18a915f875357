"""JSON: a record a line (NDJSON), quick where it is sound; or one array of objects a file."""

from __future__ import annotations

from collections.abc import Iterator

from calque.loader.model.file_formats import JsonFormat
from calque.loader.run.formats.byte_buffer import ByteBuffer
from calque.loader.run.formats.delimited.blocks import MAX_RECORD, Block, cut_blocks
from calque.loader.run.formats.delimited.dialect import Dialect
from calque.loader.run.formats.delimited.open_buffer import open_buffer
from calque.loader.run.formats.json.array import ArrayParser
from calque.loader.run.formats.json.exact import ExactParser
from calque.loader.run.formats.json.mixed import MixedParser
from calque.loader.run.formats.json.quick import QuickParser
from calque.loader.run.formats.reader import Extent, ParsedBatch, ReadSpec
from calque.loader.run.formats.refusal import Code, FileRefused
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

    def read(self) -> Iterator[ParsedBatch]:
        buffer = open_buffer(self._source, self._format.compression)
        buffer.fill(64 * KIB)
        if self._source.start == 0:
            buffer.drop_mark()
        if self._format.strip_outer_array:
            yield from ArrayParser(self._spec, self._source.location).read(buffer, self.extent)
            return
        self._begin(buffer)
        exact = ExactParser(self._spec, self._source.location)
        quick = QuickParser(self._spec, exact.names_of(buffer.data))
        stop = None if self._source.end == self._source.size else self._source.end
        mixed = MixedParser(quick, exact, self._spec.learned)
        for block in cut_blocks(buffer, LINES, stop):
            yield self._parse(block, quick, mixed, exact)

    def _begin(self, buffer: ByteBuffer) -> None:
        if self._source.start > 0:
            buffer.fill(MAX_RECORD)
            cut = buffer.data.find(b"\n") + 1
            buffer.drop(cut or len(buffer.data))
        else:
            refuse_array(self._source, buffer)
        self.extent.start = self.extent.end = buffer.base

    def _parse(
        self, block: Block, quick: QuickParser, mixed: MixedParser, exact: ExactParser
    ) -> ParsedBatch:
        parsed = None
        if quick.can_read(block):
            if not self._spec.learned:
                parsed = quick.parse(block, self.extent)
            parsed = parsed or mixed.parse(block, self.extent, self._room)
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


def refuse_array(source: Source, buffer: ByteBuffer) -> None:
    """A file that begins with an array is no NDJSON."""
    if buffer.data.lstrip().startswith(b"["):
        raise FileRefused.at(
            source.location,
            Code.NOT_THIS_FORMAT,
            "the file is one JSON array, not a record a line",
            hint="Set STRIP_OUTER_ARRAY = TRUE.",
            line=1,
            byte_offset=buffer.base,
        )
