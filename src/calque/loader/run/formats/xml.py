"""XML: every element of one name is a row; its attributes and children are the columns.

Entities are not expanded and document types are refused: a staged file is not to be trusted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any
from xml.parsers import expat

import pyarrow as pa

from calque.loader.model.file_formats import XmlFormat
from calque.loader.model.outcome import RowError
from calque.loader.model.plan import ColumnMatch
from calque.loader.run.formats import compression
from calque.loader.run.formats.cast.infer_types import infer_fields
from calque.loader.run.formats.cast.result import CastResult, RefusedCell
from calque.loader.run.formats.cast.row_caster import RowCaster
from calque.loader.run.formats.cast.rules import CastRules
from calque.loader.run.formats.column_map import map_columns, require
from calque.loader.run.formats.delimited.blocks import MAX_RECORD
from calque.loader.run.formats.reader import Extent, ParsedBatch, ReadSpec
from calque.loader.run.formats.refusal import CellError, Code, FileRefused, shorten
from calque.loader.run.formats.staged_source import Source

_ROWS = 10_000


@dataclass(slots=True)
class Row:
    """One row element: where it begins, and its texts by column."""

    line: int
    character: int
    offset: int
    values: dict[str, str] = field(default_factory=dict)
    parents: set[str] = field(default_factory=set)
    """Elements that hold others: they have no text of their own."""
    repeated: set[str] = field(default_factory=set)
    """Elements that stand there more than once: a column holds one value."""


class XmlReader:
    """Reads one XML file; columns are matched by name."""

    def __init__(self, source: Source, spec: ReadSpec) -> None:
        assert isinstance(spec.format, XmlFormat)
        self._source = source
        self._spec = spec
        self._format = spec.format
        self._room = spec.keep_errors
        self.extent = Extent()

    def read(self) -> Iterator[ParsedBatch]:
        caster = RowCaster(self._spec.schema, CastRules.of(self._format), self._spec.rescue)
        rows = read_elements(self._source, self._format)
        while batch := list(islice(rows, _ROWS)):
            yield self._parse(batch, caster)

    def _parse(self, batch: list[Row], caster: RowCaster) -> ParsedBatch:
        spec = self._spec
        found = list(dict.fromkeys(name for row in batch for name in row.values))
        match: ColumnMatch = "name_insensitive" if spec.match == "name_insensitive" else "name"
        mapped = map_columns(spec.schema, found, match, spec.columns, self._source.location)
        require(mapped, self._source.location)
        columns = [
            None if source is None else _column_of(found[source], batch)
            for source in mapped.sources
        ]
        extra = [found[index] for index in mapped.extra] if spec.rescue is not None else []
        extras = {
            at: rest
            for at, row in enumerate(batch)
            if (rest := {name: row.values[name] for name in extra if name in row.values})
        }
        cast = caster.cast(columns, len(batch), extras)
        errors = tuple(
            self._row_error(cell_error, batch) for cell_error in cast.cell_errors[: self._room]
        )
        self._room -= len(errors)
        first = self.extent.records + 1
        self.extent.records += len(batch)
        rejected = tuple(cell_error.row for cell_error in cast.cell_errors)
        return ParsedBatch(cast.rows, first, len(batch), rejected, errors)

    def _row_error(self, error: CellError, batch: list[Row]) -> RowError:
        row = batch[error.row]
        return error.at(
            self._source.location,
            self.extent.records + error.row + 1,
            line=row.line,
            character=row.character,
            raw=shorten(str(row.values)),
            byte_offset=row.offset,
        )


def _column_of(name: str, batch: list[Row]) -> CastResult:
    texts = [None if name in row.repeated else row.values.get(name) for row in batch]
    refused = tuple(
        RefusedCell(
            number, shorten(row.values[name]), Code.MALFORMED, "stands there more than once"
        )
        for number, row in enumerate(batch)
        if name in row.repeated
    )
    return CastResult(pa.array(texts, pa.string()), refused)


def infer_schema(source: Source, format: XmlFormat) -> pa.Schema:
    """Names and types by the first rows of a file."""
    rows = list(islice(read_elements(source, format), _ROWS))
    names = list(dict.fromkeys(name for row in rows for name in row.values))
    texts = ([row.values.get(name) for name in names] for row in rows)
    return infer_fields(names, texts, CastRules.of(format))


def read_elements(source: Source, format: XmlFormat) -> Iterator[Row]:
    """The row elements of a file, as they end."""
    collector = _Collector(format)
    parser = collector.parser
    try:
        for chunk in compression.open_stream(source.location, source.stream(), format.compression):
            parser.Parse(chunk, False)
            yield from collector.take_rows()
        if source.size:
            parser.Parse(b"", True)
        yield from collector.take_rows()
    except expat.ExpatError as error:
        raise FileRefused.at(
            source.location,
            Code.MALFORMED,
            f"is no sound XML: {expat.errors.messages[error.code]}, character {error.offset + 1}",
            line=error.lineno,
            byte_offset=parser.ErrorByteIndex,
        ) from error
    except LookupError as error:
        raise FileRefused.at(
            source.location, Code.INVALID_ENCODING, f"is XML in an {error}", line=1
        ) from error
    except _RowTooLong as error:
        raise FileRefused.at(
            source.location,
            Code.RECORD_TOO_LONG,
            f"the row is longer than {MAX_RECORD >> 20} MiB",
            line=parser.CurrentLineNumber,
        ) from error
    except _HasDocumentType as error:
        raise FileRefused.at(
            source.location,
            Code.MALFORMED,
            "declares a document type, which is refused: entities could hide in it",
            hint="Remove the DOCTYPE.",
            line=parser.CurrentLineNumber,
        ) from error


class _HasDocumentType(Exception):
    pass


class _RowTooLong(Exception):
    pass


class _Collector:
    """Listens to the parser and gathers the texts of row elements."""

    def __init__(self, format: XmlFormat) -> None:
        self._tag = format.row_tag
        self._prefix = format.attribute_prefix
        self._done: list[Row] = []
        self._row: Row | None = None
        self._path: list[str] = []
        self._text: list[str] = []
        self._size = 0
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.StartDoctypeDeclHandler = self._refuse

    def take_rows(self) -> list[Row]:
        """The rows that ended since the last call."""
        done, self._done = self._done, []
        return done

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if self._row is None:
            if name != self._tag:
                return
            at = self.parser
            self._row = Row(at.CurrentLineNumber, at.CurrentColumnNumber + 1, at.CurrentByteIndex)
        else:
            self._path.append(name)
        for key, value in attributes.items():
            self._put([*self._path, self._prefix + key], value)
        self._text.clear()

    def _characters(self, text: str) -> None:
        if self._row is not None:
            self._grow(len(text))
            self._text.append(text)

    def _grow(self, length: int) -> None:
        self._size += length
        if self._size > MAX_RECORD:
            raise _RowTooLong

    def _end(self, name: str) -> None:
        if self._row is None:
            return
        text = "".join(self._text)
        self._text.clear()
        if not self._path:
            self._done.append(self._row)
            self._row, self._size = None, 0
            return
        if text.strip() or ".".join(self._path) not in self._row.parents:
            self._put(self._path, text)
        self._path.pop()

    def _put(self, path: list[str], text: str) -> None:
        assert self._row is not None
        name = ".".join(path)
        self._grow(len(name))
        if name in self._row.values:
            self._row.repeated.add(name)
        self._row.values[name] = text
        self._row.parents.add(name.rpartition(".")[0])

    def _refuse(self, *declared: Any) -> None:
        raise _HasDocumentType
