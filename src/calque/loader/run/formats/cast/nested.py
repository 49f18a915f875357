"""Values inside lists, maps and structs, as strict as those of columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from calque.loader.request.type_names import text_of_type
from calque.loader.run.formats.refusal import Code

Convert = Callable[[Any], Any]


class UnfitValue(Exception):
    """A value that does not become the column's type."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def nested_converter(target: pa.DataType, converter: Callable[[pa.DataType], Convert]) -> Convert:
    """What makes a value of a list, map or struct type; ``converter`` makes its parts."""
    if pa.types.is_struct(target):
        parts = {field.name: (field, converter(field.type)) for field in target}
        return lambda value: _convert_struct(value, target, parts)
    if pa.types.is_map(target):
        key, item = converter(target.key_type), converter(target.item_type)
        return lambda value: _convert_map(value, target, key, item)
    one = converter(target.value_type)
    return lambda value: [_convert_optional(part, one) for part in _require(value, list, target)]


def _convert_struct(
    value: Any, target: pa.DataType, parts: Mapping[str, tuple[pa.Field, Convert]]
) -> dict[str, Any]:
    given = _require(value, dict, target)
    made = {}
    for name, (field, convert) in parts.items():
        made[name] = _convert_optional(given.get(name), convert)
        if made[name] is None and not field.nullable:
            why = f"has no {name!r}, which {text_of_type(target)} needs"
            raise UnfitValue(Code.NULL_NOT_ALLOWED, why)
    return made


def _convert_map(
    value: Any, target: pa.DataType, key: Convert, item: Convert
) -> list[tuple[Any, Any]]:
    pairs = _require(value, dict, target).items()
    return [(key(name), _convert_optional(part, item)) for name, part in pairs]


def _convert_optional(value: Any, convert: Convert) -> Any:
    return None if value is None else convert(value)


def _require(value: Any, kind: type, target: pa.DataType) -> Any:
    if not isinstance(value, kind):
        raise UnfitValue(Code.INVALID_VALUE, f"is no {text_of_type(target)}")
    return value
