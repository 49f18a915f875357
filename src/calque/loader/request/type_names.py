"""The types of columns in the words of SQL."""

from __future__ import annotations

import re

import pyarrow as pa

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PLAIN: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "CHAR": pa.string(),
    "NCHAR": pa.string(),
    "VARCHAR": pa.string(),
    "NVARCHAR": pa.string(),
    "TEXT": pa.string(),
    "BINARY": pa.binary(),
    "VARBINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIME": pa.time64("us"),
    "TIMESTAMP": pa.timestamp("us"),
    "DATETIME": pa.timestamp("us"),
    "TIMESTAMPNTZ": pa.timestamp("us"),
    "TIMESTAMPTZ": pa.timestamp("us", "UTC"),
    "TIMESTAMPLTZ": pa.timestamp("us", "UTC"),
}


_WORDS: dict[pa.DataType, str] = {
    **{kind: word for word, kind in reversed(PLAIN.items()) if kind != pa.string()},
    pa.string(): "TEXT",
    pa.large_string(): "TEXT",
    pa.string_view(): "TEXT",
    pa.large_binary(): "BINARY",
    pa.binary_view(): "BINARY",
}
"""The first of the words that mean a type."""


def text_of_type(kind: pa.DataType) -> str:
    """The type in the words that ``schema_text`` reads; those of Arrow where it has none."""
    if kind in _WORDS:
        return _WORDS[kind]
    if isinstance(kind, pa.Decimal128Type):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMPTZ" if kind.tz is not None else "TIMESTAMP"
    if isinstance(kind, pa.MapType):
        return f"MAP<{text_of_type(kind.key_type)}, {text_of_type(kind.item_type)}>"
    if isinstance(kind, pa.ListType | pa.LargeListType):
        return f"ARRAY<{text_of_type(kind.value_type)}>"
    if isinstance(kind, pa.StructType):
        return f"STRUCT<{', '.join(f'{_name(one)} {text_of_type(one.type)}' for one in kind)}>"
    return str(kind)


def _name(field: pa.Field) -> str:
    quoted = field.name.replace('"', '""')
    return field.name if _PLAIN_NAME.fullmatch(field.name) else f'"{quoted}"'
