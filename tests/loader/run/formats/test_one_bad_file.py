"""Whatever a file makes a library do, it costs that row or that file, and the error is ours."""

from __future__ import annotations

import io
import random
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from calque.errors import TimedOut
from calque.loader.model.error_policy import ErrorMode, ErrorPolicy
from calque.loader.model.file_formats import (
    AvroFormat,
    CsvFormat,
    JsonFormat,
    OrcFormat,
    ParquetFormat,
)
from calque.loader.model.plan import Piece
from calque.loader.run.formats import Code, FileRefused, ReadSpec, Source, open_reader
from calque.loader.run.infer import infer_schema
from calque.operator import Operator
from tests.loader.loader import Place
from tests.loader.run.formats.conftest import Read, Stage
from tests.loader.run.formats.mutants import SEEDS, mutant, nested_orc
from tests.loader.world import rows

BEYOND = "1e99999999999999999999"


def avro(fields: list[dict[str, Any]], rows: list[dict[str, Any]]) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, {"type": "record", "name": "r", "fields": fields}, rows)
    return out.getvalue()


@pytest.mark.parametrize("kind", [pa.float64(), pa.int64(), pa.decimal128(9, 2), pa.string()])
@pytest.mark.parametrize("array", [False, True], ids=["lines", "array"])
def test_an_exponent_beyond_all_measure_costs_its_record(
    read: Read, stage: Stage, kind: pa.DataType, array: bool
) -> None:
    """A JSON number that not even decimals know is an error of its record, in inference too."""
    data = f'{{"v": {BEYOND}}}\n{{"v": 2}}\n'
    format = JsonFormat(strip_outer_array=array)
    text = f"[{data.strip().replace(chr(10), ',')}]" if array else data
    result = read(text.encode(), format, [("v", kind)], match="name", name="f.json")
    assert [str(row["v"]).removesuffix(".00").removesuffix(".0") for row in result.rows] == ["2"]
    assert [error.code for error in result.errors] == [Code.OUT_OF_RANGE]
    found = infer_schema([stage.staged("g.json", text.encode())], format).schema
    assert found.field("v").type == pa.int64()


def test_the_same_inside_text(read: Read) -> None:
    """A list in a CSV field may hold such a number as well; the field is refused."""
    data = f'1,"[{BEYOND}]"\n2,"[1.5]"\n'.encode()
    result = read(data, CsvFormat(), [("k", pa.int64()), ("v", pa.list_(pa.float64()))])
    assert result.rows == [{"k": 2, "v": [1.5]}]
    assert [error.column for error in result.errors] == ["v"]


MOMENT = {"type": "long", "logicalType": "timestamp-micros"}
LATE = 253402300800_000_000  # the year 10000


@pytest.mark.parametrize("kind", [MOMENT, ["null", MOMENT]], ids=["plain", "nullable"])
def test_a_moment_past_all_calendars_costs_its_record(read: Read, kind: Any) -> None:
    """An Avro time past the year 9999 is refused with its record; the others of its block stay."""
    fields = [{"name": "n", "type": "int"}, {"name": "t", "type": kind}]
    data = avro(fields, [{"n": 1, "t": LATE}, {"n": 2, "t": 0}])
    result = read(data, AvroFormat(), [("n", pa.int32()), ("t", pa.timestamp("us", "UTC"))])
    assert result.rows == [{"n": 2, "t": datetime(1970, 1, 1, tzinfo=UTC)}]
    assert [(error.record, error.column, error.value) for error in result.errors] == [
        (1, "t", str(LATE))
    ]


def test_a_decimal_wider_than_all_tables_is_text(stage: Stage, read: Read) -> None:
    """Decimals of more than 38 digits are kept as text, from Avro and from Parquet."""
    wide = Decimal("1" * 45 + ".25")
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 2}
    data = avro([{"name": "d", "type": kind}], [{"d": wide}])
    found = infer_schema([stage.staged("f.avro", data)], AvroFormat()).schema
    assert found.field("d").type == pa.string()
    assert read(data, AvroFormat(), found).rows == [{"d": str(wide)}]
    narrow = read(data, AvroFormat(), [("d", pa.decimal128(38, 2))])
    assert [error.code for error in narrow.errors] == [Code.OUT_OF_RANGE]
    out = io.BytesIO()
    pq.write_table(pa.table({"d": pa.array([wide], pa.decimal256(50, 2))}), out)
    found = infer_schema([stage.staged("f.parquet", out.getvalue())], ParquetFormat()).schema
    assert found.field("d").type == pa.string()
    assert read(out.getvalue(), ParquetFormat(), found).rows == [{"d": str(wide)}]


def orc_without_a_struct() -> bytes:
    """A file whose outermost type is a list: the footer says struct (12), we make it list (10)."""
    out = io.BytesIO()
    orc.write_table(pa.table({"only": [1, 2, 3]}), out, compression="uncompressed")
    data = out.getvalue()
    at = data.rindex(b"\x08\x0c\x12\x01\x01\x1a\x04only")
    return data[:at] + b"\x08\x0a\x12\x01\x01\x1a\x04only" + data[at + 11 :]


def test_orc_that_crashes_its_library_is_refused(stage: Stage) -> None:
    """Types nested without end overflow the stack of the library; inference survives it."""
    sound = nested_orc(4)
    assert infer_schema([stage.staged("a.orc", sound)], OrcFormat()).schema.names == ["only"]
    files = [stage.staged("b.orc", nested_orc(200_000)), stage.staged("c.orc", sound)]
    with pytest.raises(FileRefused, match="crashed over it"):
        infer_schema(files, OrcFormat())
    found = infer_schema(files, OrcFormat(), skip_bad=True)
    assert found.schema.names == ["only"]


def test_orc_nested_deeply_is_refused(stage: Stage) -> None:
    """A schema too deep for Python, or for the way between processes, refuses its file."""
    for levels in (300, 1000, 5000):
        with pytest.raises(FileRefused):
            infer_schema([stage.staged("f.orc", nested_orc(levels))], OrcFormat())


def test_orc_without_a_struct_is_refused(stage: Stage, read: Read) -> None:
    """An ORC file whose rows have no columns is refused as a file, by an error of ours."""
    data = orc_without_a_struct()
    with pytest.raises(FileRefused):
        infer_schema([stage.staged("f.orc", data)], OrcFormat())
    with pytest.raises(FileRefused):
        read(data, OrcFormat(), [("only", pa.int64())], name="f.orc")


class Cut:
    """An operator of which every read fails midway, as a network does."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self.capability = operator.capability

    def read_stream(self, *args: Any, **options: Any) -> Any:
        yield b"Obj\x01"
        raise TimedOut("the other side was silent for 30 s")


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("f.csv", CsvFormat()),
        ("f.json", JsonFormat()),
        ("f.csv.zst", CsvFormat()),
        ("f.parquet", ParquetFormat()),
        ("f.orc", OrcFormat()),
        ("f.avro", AvroFormat()),
    ],
)
def test_a_network_is_no_damage(stage: Stage, name: str, format: Any) -> None:
    """An error in reading the bytes stays what it is, whatever library was in between."""
    file = stage.staged(name, b"x" * 1000)
    operator: Any = Cut(Operator.from_uri(str(stage.root)))
    source = Source(operator, name, Piece(file))
    spec = ReadSpec(format=format, schema=pa.schema([("v", pa.string())]))
    with pytest.raises(TimedOut):
        list(open_reader(source, spec).read())


@pytest.fixture(params=["delta", "iceberg"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    made = Place(tmp_path, request.param, str(tmp_path / "ledger.db"))
    made.stage.mkdir()
    return made


@pytest.mark.parametrize("mode", [ErrorMode.CONTINUE, ErrorMode.SKIP_FILE])
def test_the_statement_goes_on(place: Place, mode: ErrorMode) -> None:
    """Files that libraries stumble over are FAILED one by one; the sound ones are loaded."""
    orc.write_table(pa.table({"only": [1, 2]}), str(place.stage / "good.orc"))
    (place.stage / "bad.orc").write_bytes(orc_without_a_struct())
    (place.stage / "cut.orc").write_bytes((place.stage / "good.orc").read_bytes()[:-20])
    (place.stage / "text.orc").write_bytes(b"no ORC at all")
    (place.stage / "deep.orc").write_bytes(nested_orc(200_000))
    report = place.load(on_error=ErrorPolicy(mode))
    assert {row.name: row.status for row in report.rows()} == {
        "good.orc": "LOADED",
        "bad.orc": "FAILED",
        "cut.orc": "FAILED",
        "text.orc": "FAILED",
        "deep.orc": "FAILED",
    }
    assert rows(place).num_rows == 2


@pytest.mark.parametrize("value", ["x" * 300, "é" * 300, "/" * 300, "%" * 250])
def test_a_long_partition_value_is_loaded(place: Place, value: str) -> None:
    """A value that is too long for a folder's name is in the table all the same."""
    (place.stage / "a.csv").write_text(f"p,v\n{value},1\n{value}y,2\nshort,3\n")
    report = place.load(
        format=CsvFormat(parse_header=True),
        partition_by=("p",),
        on_error=ErrorPolicy(ErrorMode.CONTINUE),
    )
    assert report.rows_loaded == 3
    found = {row["p"]: row["v"] for row in rows(place).to_pylist()}
    assert found == {value: 1, value + "y": 2, "short": 3}


def test_rows_without_a_partition_fail_their_file_alone(place: Place) -> None:
    """A date beyond all calendars, late in a file: nothing of that file stays, the others load."""
    days = pa.array([1] * 70_000 + [2**30], pa.int32()).cast(pa.date32())
    pq.write_table(pa.table({"d": days, "n": range(70_001)}), place.stage / "a.parquet")
    pq.write_table(pa.table({"d": days[:3], "n": range(3)}), place.stage / "b.parquet")
    report = place.load(partition_by=("d",), on_error=ErrorPolicy(ErrorMode.CONTINUE))
    assert [(row.name, row.status) for row in report.rows()] == [
        ("a.parquet", "FAILED"),
        ("b.parquet", "LOADED"),
    ]
    assert rows(place).num_rows == report.rows_loaded == 3


def test_a_file_that_crashes_its_library(place: Place) -> None:
    """A library that brings its process down over a file costs that file and no other."""
    sound = SEEDS["orc"][2]()
    for name in ("a", "b", "c", "d"):
        (place.stage / f"{name}.orc").write_bytes(sound)
    bad = place.stage / "b.orc"
    bad.write_bytes(mutant(sound, random.Random("7/628")))
    script = f"from pyarrow import orc; orc.ORCFile({str(bad)!r}).read()"
    if subprocess.run([sys.executable, "-c", script], capture_output=True).returncode >= 0:
        pytest.skip("this version of the library survives the file")
    report = place.load(on_error=ErrorPolicy(ErrorMode.CONTINUE))
    assert {row.name: row.status for row in report.rows()} == {
        "a.orc": "LOADED",
        "b.orc": "FAILED",
        "c.orc": "LOADED",
        "d.orc": "LOADED",
    }
    assert rows(place).num_rows == 120
