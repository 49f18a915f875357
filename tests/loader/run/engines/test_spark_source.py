"""``spark.read.format("calque")``: a stage as a DataFrame."""

from __future__ import annotations

from typing import Any

import pytest

from calque.loader.spark_source import register
from tests.loader.run.conftest import World


@pytest.fixture
def reader(spark: Any) -> Any:
    register(spark)
    return spark.read.format("calque")


def test_rows_and_metadata(world: World, reader: Any) -> None:
    """Rows typed by inference, each with its file and row number."""
    world.put("1.csv", b"n,day\n1,2024-01-01\n2,2024-01-02\n")
    world.put("2.csv", b"n,day\n3,2024-01-03\n")
    world.put("_hidden.csv", b"n,day\n9,2024-01-09\n")
    frame = reader.options(type="csv", parse_header="true").load(str(world.stage))
    assert frame.schema.simpleString().startswith("struct<n:bigint,day:date,_metadata:struct<")
    found = frame.selectExpr("n", "_metadata.file_name", "_metadata.row_number").collect()
    assert sorted(tuple(row) for row in found) == [
        (1, "1.csv", 1),
        (2, "1.csv", 2),
        (3, "2.csv", 1),
    ]


def test_given_schema_is_strict(world: World, reader: Any) -> None:
    """A value that does not fit fails the query with its place, or is left out when told."""
    world.put("1.json", b'{"n":1}\n{"n":"x"}\n')
    chosen = reader.schema("n INT").option("type", "json")
    with pytest.raises(Exception, match="line 2, record 2, column n"):
        chosen.load(str(world.stage)).collect()
    left = chosen.option("on_error", "continue").load(str(world.stage)).collect()
    assert [row.n for row in left] == [1]
