"""Columns as SQL spells them, ``id BIGINT NOT NULL, day DATE``, as an Arrow schema."""

from __future__ import annotations

import re

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from calque.errors import StatementInvalid

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN: dict[str, pa.DataType] = {
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
    **{kind: word for word, kind in reversed(_PLAIN.items()) if kind != pa.string()},
    pa.string(): "TEXT",
    pa.large_string(): "TEXT",
    pa.string_view(): "TEXT",
    pa.large_binary(): "BINARY",
    pa.binary_view(): "BINARY",
}
"""The first of the words that mean a type."""


def text_of_type(kind: pa.DataType) -> str:
    """The type in the words that :func:`schema_of_text` reads; those of Arrow where it has none."""
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


def schema_of_text(text: str) -> pa.Schema:
    """The columns of a table that is to be made, in order; StatementInvalid says what is wrong."""
    try:
        tree = sqlglot.parse_one(f"CREATE TABLE t ({text})")
    except SqlglotError as error:
        raise _wrong(text, "it cannot be read") from error
    columns = tree.this.expressions if isinstance(tree, exp.Create) else []
    if not columns or not all(isinstance(one, exp.ColumnDef) for one in columns):
        raise _wrong(text, "each column has a name and a type")
    fields = [_field(one, text) for one in columns]
    names = [field.name.casefold() for field in fields]
    if len(set(names)) < len(names):
        raise _wrong(text, "a column stands there twice")
    return pa.schema(fields)


def _field(column: exp.ColumnDef, text: str) -> pa.Field:
    kind = column.args.get("kind")
    if not isinstance(kind, exp.DataType):
        raise _wrong(text, f"{column.name} has no type")
    required = any(
        isinstance(one.kind, exp.NotNullColumnConstraint) and not one.kind.args.get("allow_null")
        for one in column.args.get("constraints") or ()
    )
    return pa.field(column.name, _type(kind, text), nullable=not required)


def _type(kind: exp.DataType, text: str) -> pa.DataType:
    name = kind.this.name if isinstance(kind.this, exp.DataType.Type) else str(kind.this)
    inner = kind.expressions
    if name in _PLAIN:
        return _PLAIN[name]
    if name == "DECIMAL":
        sizes = [int(one.name) for one in inner]
        try:
            return pa.decimal128(*(sizes or [38]), *([0] if len(sizes) < 2 else []))
        except ValueError as error:
            raise _wrong(text, str(error)) from error
    if name in ("ARRAY", "LIST") and len(inner) == 1:
        return pa.list_(_type(inner[0], text))
    if name == "MAP" and len(inner) == 2:
        key, item = (_type(one, text) for one in inner)
        return pa.map_(key, item)
    if name == "STRUCT" and all(isinstance(one, exp.ColumnDef) for one in inner):
        return pa.struct([_field(one, text) for one in inner])
    raise _wrong(text, f"{kind.sql()} is no type that a table keeps")


def _wrong(text: str, why: str) -> StatementInvalid:
    return StatementInvalid(
        f"the schema {text!r} is wrong: {why}",
        hint="Spell it as SQL does: id BIGINT NOT NULL, day DATE, price DECIMAL(10, 2).",
    )
