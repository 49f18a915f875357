"""A request as the COPY INTO that asks for it: what the history keeps can be run again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import Any

from calque.loader.model.file_formats import FormatOptions
from calque.loader.model.plan import MetadataColumn, Transformation
from calque.loader.request.options import COPY, FORMATS, NOTHING, Options
from calque.loader.request.request import LoadRequest, Validation

_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*\Z", re.ASCII)
_READ_OTHERWISE = re.compile(r"(?i)none\Z|auto\Z|0x([0-9a-f]{2})+\Z")
"""Characters that would be taken for a word; they are spelled by their codes."""
_CHARACTERS = {"field_delimiter", "record_delimiter", "quote", "escape", "comment"}
_MATCHES = {
    "position": "NONE",
    "name": "CASE_SENSITIVE",
    "name_insensitive": "CASE_INSENSITIVE",
}


def render(request: LoadRequest) -> str:
    """The statement as it was written, else one that ``parse`` reads back.

    What no statement can say is left out, since it does not change what is loaded: the schema of a
    table to be made, the length of leases and batches.
    """
    if request.text is not None:
        return request.text
    columns = f" ({', '.join(map(_name, request.columns))})" if request.columns else ""
    told = [f"COPY INTO {render_table(request.into)}{columns} FROM {_source(request)}"]
    if request.format is not None:
        told.append(_format(request.format))
    told += _options(request, COPY)
    return " ".join(told)


def render_table(name: str) -> str:
    """A table's name; a location in quotes."""
    return name if _PLAIN_NAME.match(name) else _text(name)


def _source(request: LoadRequest) -> str:
    chosen = request.transformation
    if chosen is None:
        return _text(request.stage)
    named = len(chosen.columns) == len(chosen.expressions)
    told = [_with_paths(expression, chosen) for expression in chosen.expressions]
    expressions = [
        f"{expression} AS {_name(chosen.columns[index])}" if named else expression
        for index, expression in enumerate(told)
    ]
    where = f" WHERE {_with_paths(chosen.where, chosen)}" if chosen.where is not None else ""
    return f"(SELECT {', '.join(expressions)} FROM {_text(request.stage)}{where})"


def _with_paths(expression: str, chosen: Transformation) -> str:
    """``$1`` and paths as they are written in a statement, without the backquotes."""
    for path in map(str, chosen.paths):
        expression = expression.replace(f"`{path.replace('`', '``')}`", path)
    return re.sub(r"`(\$\d+)`", r"\1", expression)


def _format(format: FormatOptions) -> str:
    kind = format.kind.upper()
    known: Options = FORMATS[kind][1]
    return f"FILE_FORMAT = ({' '.join([f'TYPE = {kind}', *_options(format, known)])})"


def _options(request: LoadRequest | FormatOptions, known: Options) -> Iterator[str]:
    """Every option that differs from what holds without it."""
    usual = {one.name: _default(one) for one in fields(request)}
    seen: set[str] = set()
    for option, (target, _) in known.items():
        if target == NOTHING:
            continue
        value = getattr(request, target)
        if target not in seen and value != usual[target]:
            yield f"{option} = {_value(target, value)}"
        seen.add(target)


def _default(field: Any) -> Any:
    return field.default_factory() if field.default_factory is not MISSING else field.default


def _value(target: str, value: Any) -> str:
    if target in _CHARACTERS:
        return _character(value)
    if target == "match_by":
        return _MATCHES[value]
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(_item, value))})"
    if isinstance(value, Validation):
        return "RETURN_ERRORS" if value.rows is None else f"RETURN_{value.rows}_ROWS"
    return _text(str(value))


def _item(value: Any) -> str:
    if isinstance(value, MetadataColumn):
        return f"{_name(value.column)} = {value.kind.value.upper()}"
    return _text(value)


def _character(value: str | None) -> str:
    if value is None:
        return "NONE"
    if value == "auto":
        return "AUTO"
    if _READ_OTHERWISE.match(value):
        return _text("0x" + value.encode("latin-1").hex())
    return _text(value)


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def _name(value: str) -> str:
    escaped = value.replace('"', '""')
    return f'"{escaped}"'
