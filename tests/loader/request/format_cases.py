"""Options of file formats, each with what shows that it is not ignored."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from datetime import date, datetime, time

import pyarrow as pa

from tests.loader.request.option_case import (
    CLOCK,
    DAY,
    MOMENT,
    NEW_YEAR,
    REFUSED,
    ZONED,
    Case,
    Seen,
    as_orc,
    avro,
    csv,
    json,
    numbers,
    parquet,
    xml,
)

NAIVE = pa.table({"t": pa.array([datetime(2027, 1, 1)], pa.timestamp("us"))})
BIG = pa.table({"a": [os.urandom(64).hex() for _ in range(20_000)], "b": list(range(20_000))})


def columnar(kind: str, made: Callable[[pa.Table], bytes]) -> list[Case]:
    only_a = {"f": made(pa.table({"a": ["x"]}))}
    zoned = {"f": made(NAIVE)}
    return [
        Case("MISSING_FIELD_AS", "NULL", {"": "NULL"}, [("x", None)], only_a, kind=kind),
        Case(
            "TIME_ZONE",
            "'Europe/Paris'",
            {"": "Europe/Paris"},
            [(NEW_YEAR,)],
            zoned,
            ZONED,
            kind=kind,
        ),
    ]


def was_copied(seen: Seen) -> bool:
    """Whether a data file of the table is the staged file, byte by byte."""
    source = (seen.world.stage / "f").read_bytes()
    return any(path.read_bytes() == source for path in seen.world.table.glob("*.parquet"))


FORMAT_CASES = [
    Case(
        "COMPRESSION",
        "GZIP",
        {"": "gzip"},
        [("x", 1)],
        {"f.csv.zst": gzip.compress(b"x,1\n")},  # the name lies; the option is believed
        kind="CSV",
    ),
    csv("FIELD_DELIMITER SEP DELIMITER", "';'", ";", "x;1\n", [("x", 1)]),
    csv("RECORD_DELIMITER LINESEP", "'|'", "|", "x,1|y,2|", [("x", 1), ("y", 2)]),
    csv("FIELD_OPTIONALLY_ENCLOSED_BY QUOTE", "'%'", "%", "%x,y%,1\n", [("x,y", 1)]),
    csv("ESCAPE", r"'\\'", "\\", "x\\,y,1\n", [("x,y", 1)]),
    csv("ESCAPE_STYLE", "MYSQL", "mysql", "x\\ny,1\n", [("x\ny", 1)], beside="ESCAPE = '0x5C'"),
    csv("SKIP_HEADER SKIPROWS", "1", 1, "a,b\nx,1\n", [("x", 1)]),
    csv("PARSE_HEADER HEADER", "TRUE", True, "b,a\n1,x\n", [("x", 1)]),
    csv("NULL_IF NULL_DISPLAY NULLVALUE", "'NA'", "NA", "NA,1\n", [(None, 1)]),
    csv("QUOTED_NULLS", "TRUE", True, '"NA",1\n', [(None, 1)], beside="NULL_IF = 'NA'"),
    csv("EMPTY_FIELD_AS_NULL", "TRUE", True, ",1\n", [(None, 1)]),
    csv("EMPTY_FIELD_AS", "NULL", "NULL", ",1\n", [(None, 1)]),
    csv("TRIM_SPACE", "TRUE", True, " x ,1\n", [("x", 1)]),
    csv("COMMENT", "'#'", "#", "#y,2\nx,1\n", [("x", 1)]),
    csv("SKIP_BLANK_LINES", "FALSE", False, "x,1\n\ny,2\n", REFUSED),
    csv("ENCODING", "'latin-1'", "latin-1", b"\xe9,1\n", [("é", 1)]),
    csv("REPLACE_INVALID_CHARACTERS", "TRUE", True, b"\xff,1\n", [("\ufffd", 1)]),
    csv("ERROR_ON_COLUMN_COUNT_MISMATCH", "FALSE", False, "x,1,9\n", [("x", 1)]),
    csv(
        "DATE_FORMAT DATEFORMAT",
        "'DD/MM/YYYY'",
        "DD/MM/YYYY",
        "31/12/2026\n",
        [(date(2026, 12, 31),)],
        table=DAY,
    ),
    csv(
        "TIMESTAMP_FORMAT TIMESTAMPFORMAT",
        "'DD.MM.YYYY HH24:MI'",
        "%d.%m.%Y %H:%M",
        "31.12.2026 23:30\n",
        [(datetime(2026, 12, 31, 23, 30),)],
        table=MOMENT,
    ),
    csv(
        "TIME_ZONE",
        "'Europe/Paris'",
        "Europe/Paris",
        "2027-01-01 00:00:00\n",
        [(NEW_YEAR,)],
        table=ZONED,
    ),
    csv(
        "DECIMAL_POINT",
        "','",
        ",",
        "1,5\n",
        [(1.5,)],
        table=pa.schema([("n", pa.float64())]),
        beside="FIELD_DELIMITER = ';'",
    ),
    csv(
        "THOUSANDS_SEPARATOR",
        "'.'",
        ".",
        "1.500\n",
        [(1500,)],
        table=pa.schema([("n", pa.int64())]),
        beside="DECIMAL_POINT = ','",
    ),
    csv(
        "TIME_FORMAT",
        "'HH12:MI AM'",
        "%I:%M %p",
        "11:30 PM\n",
        [(time(23, 30),)],
        table=CLOCK,
        lake="iceberg",
    ),
    csv(
        "NAN_DISPLAY NANVALUE",
        "'-'",
        "-",
        "-\n1.5\n",
        ["1.5", "nan"],
        table=pa.schema([("n", pa.float64())]),
        see=numbers,
    ),
    csv(
        "BINARY_FORMAT",
        "HEX",
        "hex",
        "6162\n",
        [(b"ab",)],
        table=pa.schema([("v", pa.binary())]),
    ),
    csv(
        "TRUE_VALUES", "('yes')", ("yes",), "yes\n", [(True,)], table=pa.schema([("v", pa.bool_())])
    ),
    csv(
        "FALSE_VALUES", "('no')", ("no",), "no\n", [(False,)], table=pa.schema([("v", pa.bool_())])
    ),
    Case(
        "COMPRESSION",
        "GZIP",
        {"": "gzip"},
        [("x", 1)],
        {"f.json.zst": gzip.compress(b'{"a":"x","b":1}\n')},
        kind="JSON",
    ),
    json(
        "STRIP_OUTER_ARRAY MULTILINE",
        "TRUE",
        True,
        '[{"a":"x","b":1},\n{"a":"y","b":2}]',
        [("x", 1), ("y", 2)],
    ),
    json("NULL_IF", "('NA')", ("NA",), '{"a":"NA","b":1}\n', [(None, 1)]),
    json(
        "STRIP_NULL_VALUES",
        "TRUE",
        True,
        '{"a":{"x":null,"y":[null,{"z":null}]},"b":1}\n',
        [('{"y": [null, {}]}', 1)],
    ),
    json("MISSING_FIELD_AS", "ERROR", "error", '{"a":"x"}\n', REFUSED),
    json(
        "DATE_FORMAT DATEFORMAT",
        "'DD/MM/YYYY'",
        "DD/MM/YYYY",
        '{"d":"31/12/2026"}\n',
        [(date(2026, 12, 31),)],
        table=DAY,
    ),
    json(
        "TIMESTAMP_FORMAT TIMESTAMPFORMAT",
        "'%d.%m.%Y %H:%M'",
        "%d.%m.%Y %H:%M",
        '{"t":"31.12.2026 23:30"}\n',
        [(datetime(2026, 12, 31, 23, 30),)],
        table=MOMENT,
    ),
    json(
        "TIME_FORMAT",
        "'HH24.MI'",
        "HH24.MI",
        '{"c":"23.30"}\n',
        [(time(23, 30),)],
        table=CLOCK,
        lake="iceberg",
    ),
    json(
        "TIME_ZONE",
        "'Europe/Paris'",
        "Europe/Paris",
        '{"t":"2027-01-01 00:00:00"}\n',
        [(NEW_YEAR,)],
        table=ZONED,
    ),
    *columnar("PARQUET", parquet),
    *columnar("ORC", as_orc),
    *columnar("AVRO", avro),
    Case(
        "COPY_IF_FITS",
        "FALSE",
        {"": False},
        False,
        {"f": parquet(BIG)},
        kind="PARQUET",
        see=was_copied,
    ),
    Case(
        "COMPRESSION",
        "GZIP",
        {"": "gzip"},
        [("x", 1)],
        {"f.xml.zst": gzip.compress(b"<t><row><a>x</a><b>1</b></row></t>")},
        kind="XML",
    ),
    xml("ROW_TAG ROWTAG", "'r'", "r", "<t><r><a>x</a><b>1</b></r></t>", [("x", 1)]),
    xml(
        "ATTRIBUTE_PREFIX ATTRIBUTEPREFIX",
        "''",
        "",
        '<t><row a="x"><b>1</b></row></t>',
        [("x", 1)],
    ),
    xml(
        "DATE_FORMAT",
        "'DD/MM/YYYY'",
        "DD/MM/YYYY",
        "<t><row><d>31/12/2026</d></row></t>",
        [(date(2026, 12, 31),)],
        table=DAY,
    ),
    xml(
        "TIMESTAMP_FORMAT",
        "'%d.%m.%Y %H:%M'",
        "%d.%m.%Y %H:%M",
        "<t><row><t>31.12.2026 23:30</t></row></t>",
        [(datetime(2026, 12, 31, 23, 30),)],
        table=MOMENT,
    ),
    xml(
        "TIME_FORMAT",
        "'HH24.MI'",
        "HH24.MI",
        "<t><row><c>23.30</c></row></t>",
        [(time(23, 30),)],
        table=CLOCK,
        lake="iceberg",
    ),
    xml(
        "TIME_ZONE",
        "'Europe/Paris'",
        "Europe/Paris",
        "<t><row><t>2027-01-01 00:00:00</t></row></t>",
        [(NEW_YEAR,)],
        table=ZONED,
    ),
]
