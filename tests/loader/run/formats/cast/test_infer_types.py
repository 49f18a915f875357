"""Inference rounds nothing: the type it chooses gives every value back as it was written."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calque.loader.model.file_formats import (
    AvroFormat,
    CsvFormat,
    FormatOptions,
    JsonFormat,
    ParquetFormat,
    XmlFormat,
)
from calque.loader.run.formats import ReadSpec, open_reader
from calque.loader.run.infer import infer_schema
from tests.loader.run.formats.conftest import Stage

COLUMNS = [
    (["1", "2"], pa.int64()),
    (["1", "0.5"], pa.float64()),
    (["9223372036854775807", "-9223372036854775808"], pa.int64()),
    (["18446744073709551615", "1"], pa.decimal128(20, 0)),
    (["9007199254740993", "0.5"], pa.decimal128(17, 1)),
    (["9007199254740992", "0.5"], pa.float64()),
    (["3.14159265358979323846", "1"], pa.decimal128(21, 20)),
    (["-0.10000000000000000000", "0.1"], pa.float64()),
    (["9007199254740993", "1e300"], pa.string()),
    (["1e300", "1e-300"], pa.float64()),
    (["1e400", "1"], pa.string()),
    (["1e-400", "1"], pa.string()),
    (["1" + "0" * 40, "1"], pa.float64()),
    (["1" + "0" * 39 + "1", "1"], pa.string()),
    (["0." + "0" * 36 + "12", "7"], pa.float64()),
]


def written(kind: str, texts: list[str]) -> tuple[bytes, FormatOptions]:
    if kind == "csv":
        return "".join(f"{text},x\n" for text in ["v", *texts]).encode(), CsvFormat(
            parse_header=True
        )
    if kind == "json":
        return "".join(f'{{"v": {text}}}\n' for text in texts).encode(), JsonFormat()
    if kind == "array":
        rows = ", ".join(f'{{"v": {text}}}' for text in texts)
        return f"[{rows}]".encode(), JsonFormat(strip_outer_array=True)
    rows = "".join(f"<row><v>{text}</v></row>" for text in texts)
    return f"<r>{rows}</r>".encode(), XmlFormat()


@pytest.mark.parametrize("kind", ["csv", "json", "array", "xml"])
@pytest.mark.parametrize(("texts", "wanted"), COLUMNS)
def test_the_narrowest_type_that_keeps_all(
    stage: Stage, kind: str, texts: list[str], wanted: pa.DataType
) -> None:
    """Integer, double, decimal, then text; in one file and over two, in either order."""
    data, format = written(kind, texts)
    found = infer_schema([stage.staged(f"f.{kind}", data)], format).schema
    assert found.field("v").type == wanted
    apart = [
        stage.staged(f"{at}.{kind}", written(kind, [text])[0]) for at, text in enumerate(texts)
    ]
    assert infer_schema(apart, format).schema.field("v").type == wanted
    assert infer_schema(apart[::-1], format).schema.field("v").type == wanted


def test_nested_numbers(stage: Stage) -> None:
    """Inside lists and structs numbers are kept as well."""
    data = b'{"l": [9007199254740993, 0.5], "s": {"x": 18446744073709551615}}\n{"l": [1]}\n'
    found = infer_schema([stage.staged("f.json", data)], JsonFormat()).schema
    assert found.field("l").type == pa.list_(pa.decimal128(17, 1))
    assert found.field("s").type == pa.struct([("x", pa.decimal128(20, 0))])


numbers = st.one_of(
    st.integers(-(10**22), 10**22).map(str),
    st.integers(-100, 100).map(str),
    st.decimals(-(10**20), 10**20, places=3).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
)


@settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(texts=st.lists(numbers, min_size=1, max_size=6), kind=st.sampled_from(["csv", "json"]))
def test_what_is_inferred_loads_unchanged(tmp_path: Path, texts: list[str], kind: str) -> None:
    """A column of any numbers loads into its inferred type, and each is the number it was."""
    (tmp_path / "s").mkdir(exist_ok=True)
    stage = Stage(tmp_path / "s")
    data, format = written(kind, texts)
    file = stage.staged(f"f.{kind}", data)
    schema = infer_schema([file], format).schema
    spec = ReadSpec(format=format, schema=schema, match="name")
    parsed = list(open_reader(stage.source(file), spec).read())
    assert [error for batch in parsed for error in batch.errors] == []
    loaded = [row["v"] for batch in parsed for row in batch.rows.to_pylist()]
    exact = [Decimal(repr(one) if isinstance(one, float) else one) for one in loaded]
    wide = [Decimal(one) if isinstance(one, float) else None for one in loaded]
    for text, near, same in zip(texts, exact, wide, strict=True):
        assert Decimal(text) in (near, same)


def test_a_union_of_long_and_double_is_text(stage: Stage) -> None:
    """No number type keeps all longs and all doubles; ints and floats a double does keep."""
    schema = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "wide", "type": ["null", "long", "double"]},
            {"name": "narrow", "type": ["int", "float"]},
            {"name": "none", "type": ["null"]},
        ],
    }
    rows = [
        {"wide": 9007199254740993, "narrow": 7, "none": None},
        {"wide": 0.5, "narrow": 0.5, "none": None},
    ]
    out = io.BytesIO()
    fastavro.writer(out, schema, rows)
    file = stage.staged("f.avro", out.getvalue())
    found = infer_schema([file], AvroFormat()).schema
    assert [str(kind) for kind in found.types] == ["string", "double", "string"]
    reader = open_reader(stage.source(file), ReadSpec(format=AvroFormat(), schema=found))
    (parsed,) = reader.read()
    assert parsed.rows.to_pydict() == {
        "wide": ["9007199254740993", "0.5"],
        "narrow": [7.0, 0.5],
        "none": [None, None],
    }


@pytest.mark.parametrize(
    ("big", "wanted"), [(7, pa.float64()), (2**53, pa.float64()), (2**53 + 1, pa.string())]
)
def test_parquet_files_that_disagree(stage: Stage, big: int, wanted: pa.DataType) -> None:
    """Integers in one file, doubles in another: a double if a sample shows that it keeps both."""
    files = []
    for at, column in enumerate([pa.array([big, None], pa.int64()), pa.array([0.5])]):
        out = io.BytesIO()
        pq.write_table(pa.table({"v": column, "n": [1] * len(column)}), out)
        files.append(stage.staged(f"{at}.parquet", out.getvalue()))
    found = infer_schema(files, ParquetFormat()).schema
    assert found.field("v").type == wanted
    assert found.field("n").type == pa.int64()


@pytest.mark.parametrize(
    ("options", "texts", "wanted"),
    [
        ({"date_format": "%d/%m/%Y"}, ["01/02/2024", "31/12/2024"], pa.date32()),
        ({"date_format": "%Y%m%d"}, ["20240131", "20241231"], pa.date32()),
        ({"date_format": "%d%m%Y"}, ["01022024", "31122024"], pa.date32()),
        ({"date_format": "%d/%m/%Y"}, ["1", "2"], pa.int64()),
        ({"date_format": "%d/%m/%Y"}, ["01/02/2024", "x"], pa.string()),
        ({"timestamp_format": "%d.%m.%Y %H:%M"}, ["01.02.2024 10:30"], pa.timestamp("us")),
        ({"timestamp_format": "%Y%m%d%H%M%S"}, ["20240131103000"], pa.timestamp("us")),
        (
            {"timestamp_format": "%Y%m%d%H%M%S", "time_zone": "Europe/Paris"},
            ["20240131103000"],
            pa.timestamp("us", "UTC"),
        ),
        (
            {"date_format": "%d/%m/%Y", "timestamp_format": "%d/%m/%Y %H:%M"},
            ["01/02/2024 10:30", "02/02/2024 10:30"],
            pa.timestamp("us"),
        ),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "json", "xml"])
def test_stated_formats_are_used(
    stage: Stage, kind: str, options: dict[str, str], texts: list[str], wanted: pa.DataType
) -> None:
    """DATE_FORMAT, TIMESTAMP_FORMAT and TIME_ZONE tell dates and times as they do in loading."""
    if kind == "json":
        texts = [json.dumps(text) for text in texts]
        wanted = pa.string() if wanted == pa.int64() else wanted
    data, format = written(kind, texts)
    stated = type(format)(**{**options, **({"parse_header": True} if kind == "csv" else {})})
    found = infer_schema([stage.staged(f"f.{kind}", data)], stated).schema
    assert found.field("v").type == wanted
