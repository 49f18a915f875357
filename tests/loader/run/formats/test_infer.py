"""Inference: the narrowest type that keeps every value, over several files."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calque.errors import DataError
from calque.loader.model.file_formats import CsvFormat, JsonFormat, ParquetFormat, XmlFormat
from calque.loader.run.formats.unify_schemas import unify_schemas
from calque.loader.run.infer import infer_schema, sample_of
from tests.loader.run.formats.conftest import Stage

HEADED = CsvFormat(parse_header=True)


def test_csv_types(stage: Stage) -> None:
    """Types are seen in text; leading zeros stay text; an empty field is text unless NULL."""
    data = (
        b"i,f,b,d,t,z,s,zero,e\n"
        b"1,1.5,true,2024-01-01,2024-01-01 10:00:00,2024-01-01T10:00:00Z,x,007,\n"
        b"-2,2,false,2024-01-02,2024-01-01 10:00:00.5,2024-01-01T10:00:00+02:00,y,010,3\n"
    )
    found = infer_schema([stage.staged("f.csv", data)], HEADED).schema
    assert dict(zip(found.names, map(str, found.types), strict=True)) == {
        "i": "int64",
        "f": "double",
        "b": "bool",
        "d": "date32[day]",
        "t": "timestamp[us]",
        "z": "timestamp[us, tz=UTC]",
        "s": "string",
        "zero": "string",
        "e": "string",
    }
    lenient = CsvFormat(parse_header=True, empty_field_as_null=True)
    assert infer_schema([stage.staged("g.csv", data)], lenient).schema.field("e").type == pa.int64()


def test_without_header(stage: Stage) -> None:
    """Columns without names are numbered from 1."""
    found = infer_schema([stage.staged("f.csv", b"1,x\n")], CsvFormat()).schema
    assert found.names == ["_c1", "_c2"]


def test_several_files(stage: Stage) -> None:
    """Files are joined: new columns at the end, types widened, text where they disagree."""
    files = [
        stage.staged("1.csv", b"a,b\n1,1\n"),
        stage.staged("2.csv", b"a,c\n1.5,x\n"),
        stage.staged("3.csv", b"a,b\n2,yes\n"),
    ]
    inferred = infer_schema(files, HEADED)
    assert [(field.name, str(field.type)) for field in inferred.schema] == [
        ("a", "double"),
        ("b", "string"),
        ("c", "string"),
    ]
    assert inferred.files == tuple(file.location for file in files)


def test_json_xml_parquet(stage: Stage) -> None:
    """Other formats are asked for what they know of themselves."""
    lines = b'{"a":1,"b":{"x":1.5},"l":[1]}\n{"a":null,"b":{"y":"z"}}\n'
    found = infer_schema([stage.staged("f.json", lines)], JsonFormat()).schema
    assert found.field("a").type == pa.int64()
    assert found.field("b").type == pa.struct([("x", pa.float64()), ("y", pa.string())])
    xml = b"<r><row a='1'><b>x</b></row></r>"
    assert infer_schema([stage.staged("f.xml", xml)], XmlFormat()).schema.names == ["_a", "b"]
    out = io.BytesIO()
    pq.write_table(pa.table({"t": pa.array([0], pa.timestamp("ns"))}), out)
    found = infer_schema([stage.staged("f.parquet", out.getvalue())], ParquetFormat()).schema
    assert found.field("t").type == pa.timestamp("us")


def test_nothing_to_infer(stage: Stage) -> None:
    """Empty files have no schema, and it is said so."""
    with pytest.raises(DataError, match="empty"):
        infer_schema([stage.staged("f.csv", b"")], HEADED)


@pytest.mark.parametrize(
    ("data", "array", "why"),
    [
        (b'{"x":1,"x":2}\n{"x":[1,]}\n', False, "the key 'x' stands there twice.*line 1"),
        (b'\n\n{"x":[1,]}\n', False, "is no JSON.*line 3"),
        (b'[\n{"x":[1,]}]', True, "is no JSON.*line 2"),
        (b"{}\n", False, "no file has a record with columns"),
    ],
)
def test_what_tells_no_columns_is_named(stage: Stage, data: bytes, array: bool, why: str) -> None:
    """Where no record is sound the first one is told, not that files are empty."""
    bad = stage.staged("bad.json", data)
    format = JsonFormat(strip_outer_array=array)
    with pytest.raises(DataError, match=f"(?s){why}"):
        infer_schema([bad], format)
    good = stage.staged("good.json", b'[{"a":1}]' if array else b'{"a":1}')
    assert infer_schema([bad, good], format).schema.names == ["a"]


def test_sample() -> None:
    """The sample holds the first and the last file."""
    files = list(range(100))
    sample = sample_of(files, 10)  # type: ignore[arg-type,type-var]
    assert (sample[0], sample[-1], len(sample)) == (0, 99, 10)


def test_unify_is_nullable() -> None:
    """An inferred column may be NULL, whatever the file says."""
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    assert unify_schemas([schema]).field("a").nullable
