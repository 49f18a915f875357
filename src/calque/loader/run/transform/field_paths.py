"""What ``$1`` and ``$1:a.b[0]`` stand for, once the columns of the files are known.

In delimited text ``$1`` is the first column. Every other format has records with names, and there
``$1`` is the whole record: ``$1:id`` is its field ``id``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from calque.errors import StatementInvalid
from calque.loader.model.field_path import FieldPath
from calque.loader.model.file_formats import CsvFormat, FormatOptions, JsonFormat, XmlFormat
from calque.loader.model.plan import Transformation
from calque.loader.request.select_clause import variant_path
from calque.loader.request.type_names import text_of_type

RECORD = "$1"
_POSITION = re.compile(r"`(\$\d+)`")


@dataclass(frozen=True, slots=True)
class SelectColumns:
    """What a SELECT reads: the files' columns, and Spark SQL for each path by its name."""

    raw: pa.Schema
    paths: tuple[tuple[str, str], ...] = ()

    @property
    def expressions(self) -> list[str]:
        """Everything that the SELECT may name."""
        return ["*", *(f"{sql} AS {quote_name(name)}" for name, sql in self.paths)]


def columns_of(chosen: Transformation, raw: pa.Schema, format: FormatOptions) -> SelectColumns:
    """The columns with every path found in them.

    Records of JSON and XML may leave out what they do not have, so a field that no looked-at record
    has is read as text: it is NULL unless a later record has it. ``raw`` grows by such fields.
    """
    if not isinstance(format, CsvFormat):
        _refuse_whole_records(chosen, format)
    finder = _PathFinder(raw, format)
    found = tuple((str(path), finder.find(path)) for path in chosen.paths)
    return SelectColumns(finder.raw, found)


def quote_name(name: str) -> str:
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


def _refuse_whole_records(chosen: Transformation, format: FormatOptions) -> None:
    kind = format.kind.upper()
    for text in (*chosen.expressions, chosen.where or ""):
        for place in _POSITION.findall(text):
            raise StatementInvalid(
                f"{place} is the whole record of {kind} and no value of a column"
                if place == RECORD
                else f"{kind} has one column, $1, the whole record: there is no {place}",
                hint="Name a field of it: $1:name, or name alone.",
            )


class _PathFinder:
    def __init__(self, raw: pa.Schema, format: FormatOptions) -> None:
        self.raw = raw
        self._format = format
        self._grows = isinstance(format, JsonFormat | XmlFormat)

    def find(self, path: FieldPath) -> str:
        """Spark SQL for the value at a path."""
        column, steps = path.column, path.steps
        is_text = isinstance(self._format, CsvFormat)
        if re.fullmatch(r"\$\d+", column) and is_text:
            return self._sql_inside(quote_name(column), pa.string(), steps, path)
        if column == RECORD:
            if not isinstance(steps[0], str):
                raise StatementInvalid(f"{path}: a record has names and no numbers")
            column, steps = steps[0], steps[1:]
        elif column.startswith("$"):
            kind = self._format.kind.upper()
            raise StatementInvalid(f"{path}: {kind} has one column, $1, the whole record")
        if isinstance(self._format, XmlFormat):
            column, steps = self._element(column, steps, path), ()
        field = self._field(list(self.raw), column, path)
        if field is None:
            self.raw = self.raw.append(pa.field(column, pa.string()))
            field = self.raw.field(column)
        kind = self._grow(field.type, steps, path)
        index = self.raw.get_field_index(field.name)
        self.raw = self.raw.set(index, pa.field(field.name, kind))
        return self._sql_inside(quote_name(field.name), kind, steps, path)

    def _element(self, column: str, steps: Sequence[str | int], path: FieldPath) -> str:
        """Elements inside of others are columns too, by the names on the way to them."""
        if not all(isinstance(step, str) for step in steps):
            raise StatementInvalid(f"{path}: elements have names and no numbers")
        return ".".join(map(str, (column, *steps)))

    def _field(self, fields: Sequence[pa.Field], name: str, path: FieldPath) -> pa.Field | None:
        """The field of this name, spelled alike, else but for case; None where it may be new."""
        alike = [one for one in fields if one.name == name]
        alike = alike or [one for one in fields if one.name.casefold() == name.casefold()]
        if alike:
            return alike[0]
        if self._grows:
            return None
        raise StatementInvalid(
            f"{path}: no file that was looked at has a field {name!r}",
            hint=f"Fields: {', '.join(one.name for one in fields)}.",
        )

    def _grow(self, kind: pa.DataType, steps: Sequence[str | int], path: FieldPath) -> pa.DataType:
        """The type with a field for every step of the path."""
        if not steps:
            return kind
        if pa.types.is_list(kind):
            return pa.list_(self._grow(kind.value_type, steps[1:], path))
        if not (pa.types.is_struct(kind) and isinstance(steps[0], str)):
            return kind
        field = self._field(list(kind), steps[0], path)
        if field is None:
            return pa.struct([*kind, pa.field(steps[0], pa.string())])
        grown = pa.field(field.name, self._grow(field.type, steps[1:], path))
        return pa.struct([grown if one.name == field.name else one for one in kind])

    def _sql_inside(
        self, sql: str, kind: pa.DataType, steps: tuple[str | int, ...], path: FieldPath
    ) -> str:
        if not steps:
            return sql
        step, rest = steps[0], steps[1:]
        if pa.types.is_string(kind):
            # What a reader keeps as text because records disagree may be text that is no JSON.
            parse = "parse_json" if isinstance(self._format, CsvFormat) else "try_parse_json"
            return f"variant_get({parse}({sql}), {_quote_text(variant_path(steps))}, 'string')"
        if pa.types.is_list(kind) and isinstance(step, int):
            return self._sql_inside(f"get({sql}, {step})", kind.value_type, rest, path)
        if pa.types.is_map(kind) and isinstance(step, str):
            inner = f"try_element_at({sql}, {_quote_text(step)})"
            return self._sql_inside(inner, kind.item_type, rest, path)
        if pa.types.is_struct(kind) and isinstance(step, str):
            field = self._field(list(kind), step, path)
            assert field is not None, "the type has grown by the path"
            return self._sql_inside(f"{sql}.{quote_name(field.name)}", field.type, rest, path)
        told = f"{path}: {step!r} leads nowhere in a value of type {text_of_type(kind)}"
        raise StatementInvalid(told)


def _quote_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
