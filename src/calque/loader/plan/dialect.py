"""The dialect of a stage's delimited text: said, kept with the table, or recognised.

What the user says rules. What is left unsaid is taken from the table, which keeps the dialect of
the files it was made from; only where it keeps none are the files themselves asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from calque.errors import (
    ConditionNotMatch,
    InvalidInput,
    NotFound,
    PermissionDenied,
    Unsupported,
)
from calque.loader.model.file_formats import CsvFormat, FormatOptions
from calque.loader.model.plan import Piece
from calque.loader.model.staged_file import StagedFile
from calque.loader.request.request import LoadRequest
from calque.loader.run.formats.byte_buffer import is_utf8
from calque.loader.run.formats.csv.sniffer import (
    Head,
    read_head,
    recognise_delimiter,
    recognise_encoding,
    recognise_header,
    recognise_quote,
    require_utf8,
)
from calque.loader.run.formats.refusal import FileRefused
from calque.loader.run.formats.staged_source import Source
from calque.loader.run.infer import SAMPLED, sample_of
from calque.loader.run.operators import Operators

T = TypeVar("T")

PROPERTY = "calque.csv"
"""The table's property that keeps how its files are read, as JSON."""

_SHOWN = ("field_delimiter", "quote", "parse_header", "encoding")
_KEPT = tuple(
    field.name for field in fields(CsvFormat) if field.name not in ("compression", "kind")
)


@dataclass(frozen=True, slots=True)
class Reading:
    """How files are read, and where that was known from."""

    format: FormatOptions
    origin: str | None = None
    """Of delimited text; None where the statement says it all."""

    @property
    def note(self) -> str | None:
        """The dialect in a line for the report."""
        if not isinstance(self.format, CsvFormat) or self.origin is None:
            return None
        return f"read as {describe(self.format)} ({self.origin})"


def describe(format: CsvFormat) -> str:
    """Delimiter, quote, header and encoding in words."""
    quote = f"quote {format.quote}" if format.quote else "no quotes"
    header = "with a header" if format.parse_header else "without a header"
    return f"CSV: delimiter {format.field_delimiter!r}, {quote}, {header}, {format.encoding}"


def choose_dialect(
    request: LoadRequest,
    format: FormatOptions,
    files: Sequence[StagedFile],
    source_options: Mapping[str, object],
    properties: Mapping[str, str],
    columns: Sequence[str] = (),
) -> Reading:
    """The format with what was left unsaid. ``properties`` and ``columns`` are the table's."""
    if not isinstance(format, CsvFormat) or request.says_all_of_its_format:
        return Reading(format)
    said = set(request.said or ())
    if "skip_header" in said:
        said.add("parse_header")  # lines that are skipped name nothing
    kept = _read_property(properties)
    if kept is not None:
        unsaid = {name: value for name, value in kept.items() if name not in said}
        with suppress(InvalidInput):  # two options that cannot go together
            return Reading(replace(format, **unsaid), "as the table was made")
    return _recognise_dialect(
        format, said, files, source_options, columns, one_bad_file_ends_it=request.aborts
    )


def as_property(format: FormatOptions) -> dict[str, str]:
    """What a new table keeps of how its files are read."""
    if not isinstance(format, CsvFormat):
        return {}
    usual = CsvFormat()
    values = {name: getattr(format, name) for name in _KEPT}
    kept = {
        name: value
        for name, value in values.items()
        if name in _SHOWN or value != getattr(usual, name)
    }
    return {PROPERTY: json.dumps(kept, ensure_ascii=False)}


def _read_property(properties: Mapping[str, str]) -> dict[str, Any] | None:
    """What the table keeps; None where it keeps nothing that can be read."""
    try:
        found = json.loads(properties[PROPERTY])
    except (KeyError, ValueError):
        return None
    if not isinstance(found, dict):
        return None
    values = {name: tuple(one) if isinstance(one, list) else one for name, one in found.items()}
    return values if all(_can_be_value(name, value) for name, value in values.items()) else None


def _can_be_value(name: str, value: Any) -> bool:
    """Whether this could be an option's value: anybody can write a table's properties."""
    if name not in _KEPT:
        return False
    usual = getattr(CsvFormat(), name)
    if isinstance(usual, tuple):
        return isinstance(value, tuple) and all(isinstance(one, str) for one in value)
    optional = usual is None or name == "quote"
    return (value is None and optional) or type(value) is (str if usual is None else type(usual))


def _recognise_dialect(
    format: CsvFormat,
    said: set[str],
    files: Sequence[StagedFile],
    source_options: Mapping[str, object],
    columns: Sequence[str],
    *,
    one_bad_file_ends_it: bool,
) -> Reading:
    if said.issuperset(_SHOWN):
        return Reading(format)
    sampled = sample_of([file for file in files if file.identity.size], SAMPLED)
    operators = Operators(source_options)
    try:
        sources = [Source(*operators.at(file.location), Piece(file)) for file in sampled]
        if "encoding" not in said:
            format = _with_encoding(format, sources)
        heads = list(_heads(format, sources))
    finally:
        operators.close()
    guessed = "encoding" not in said and not format.replace_invalid_characters
    if guessed and is_utf8(format.encoding):
        require_utf8(heads, by_all=not one_bad_file_ends_it)
    if not heads:
        return Reading(format if "parse_header" in said else replace(format, parse_header=True))
    if "field_delimiter" not in said:
        format = replace(format, field_delimiter=recognise_delimiter(heads, format))
    if "quote" not in said:
        format = replace(format, quote=recognise_quote(heads, format))
    if "parse_header" not in said:
        format = replace(format, parse_header=recognise_header(heads, format, columns))
    return Reading(format, "recognised")


def _with_encoding(format: CsvFormat, sources: Sequence[Source]) -> CsvFormat:
    """The encoding that every file tells, by a byte order mark or by its zeros; else UTF-8."""
    told = set(_sample_sources(sources, lambda source: recognise_encoding(source, format)))
    found = told.pop() if len(told) == 1 else None
    return format if found is None else replace(format, encoding=found)


def _heads(format: CsvFormat, sources: Sequence[Source]) -> Iterator[Head]:
    found = _sample_sources(sources, lambda source: read_head(source, format))
    return (head for head in found if head is not None)


def _sample_sources(sources: Sequence[Source], look: Callable[[Source], T]) -> Iterator[T]:
    """A file that cannot be read tells nothing here: it is told of when it is loaded."""
    for source in sources:
        with suppress(FileRefused, NotFound, ConditionNotMatch, PermissionDenied, Unsupported):
            yield look(source)
