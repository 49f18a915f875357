"""Rows as values of JSON, and types as words that can be read back."""

from __future__ import annotations

import json
from datetime import time
from decimal import Decimal

import pyarrow as pa

from calque.loader.look.rows import cells_of, rows_of
from calque.loader.request.schema_text import schema_of_text
from calque.loader.request.type_names import text_of_type


def test_every_value_is_json() -> None:
    """Whatever a table can hold goes through JSON; NULL is told from the empty text."""
    table = pa.table(
        {
            "d": [Decimal("1.10"), None],
            "t": pa.array([time(1, 2), None]),
            "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
            "b": [True, None],
            "s": ["", None],
        }
    )
    assert rows_of(table)[0] == {"d": "1.10", "t": "01:02:00", "m": [["k", 1]], "b": True, "s": ""}
    assert json.loads(json.dumps(rows_of(table)))[1]["m"] is None
    assert cells_of(table)[0][3:] == ["true", ""]
    assert set(cells_of(table)[1]) == {"NULL"}


def test_types_are_told_in_words_that_can_be_read() -> None:
    """What a preview says of types can be given to ``--schema``."""
    text = (
        'a BIGINT, b TEXT, c DECIMAL(10, 2), d TIMESTAMPTZ, e ARRAY<STRUCT<x INT, "y z" DATE>>, '
        "f MAP<TEXT, DOUBLE>, g BOOLEAN, h BINARY, i TIMESTAMP, j SMALLINT, k TINYINT, l FLOAT"
    )
    schema = schema_of_text(text)
    told = ", ".join(f"{one.name} {text_of_type(one.type)}" for one in schema)
    assert told == text
    assert schema_of_text(told).equals(schema)
