"""Values inside lists, maps and structs, as strict as those of columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from calque.loader.run.formats.reject import Code

Convert = Callable[[Any], Any]


class Unfit(Exception):
    """A value that does not become the column's type."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def nested(target: pa.DataType, converter: Callable[[pa.DataType], Convert]) -> Convert:
    """What makes a value of a list, map or struct type; ``converter`` makes its parts."""
    if pa.types.is_struct(target):
        parts = {field.name: (field, converter(field.type)) for field in target}
        return lambda value: _struct(value, target, parts)
    if pa.types.is_map(target):
        key, item = converter(target.key_type), converter(target.item_type)
        return lambda value: _map(value, target, key, item)
    one = converter(target.value_type)
    return lambda value: [_maybe(part, one) for part in _checked(value, list, target)]


def _struct(
    value: Any, target: pa.DataType, parts: Mapping[str, tuple[pa.Field, Convert]]
) -> dict[str, Any]:
    given = _checked(value, dict, target)
    made = {}
    for name, (field, convert) in parts.items():
        made[name] = _maybe(given.get(name), convert)
        if made[name] is None and not field.nullable:
            raise Unfit(Code.NULL_NOT_ALLOWED, f"has no {name!r}, which {target} needs")
    return made


def _map(value: Any, target: pa.DataType, key: Convert, item: Convert) -> list[tuple[Any, Any]]:
    pairs = _checked(value, dict, target).items()
    return [(key(name), _maybe(part, item)) for name, part in pairs]


def _maybe(value: Any, convert: Convert) -> Any:
    return None if value is None else convert(value)


def _checked(value: Any, kind: type, target: pa.DataType) -> Any:
    if not isinstance(value, kind):
        raise Unfit(Code.INVALID_VALUE, f"is no {target}")
    return value
