"""Columns as SQL spells them, ``id BIGINT NOT NULL, day DATE``, as an Arrow schema."""

from __future__ import annotations

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from calque.errors import StatementInvalid
from calque.loader.request.type_names import PLAIN


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
    if name in PLAIN:
        return PLAIN[name]
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
