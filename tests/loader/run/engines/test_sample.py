"""The first rows of a stage, without loading any."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest
from pyarrow import orc

from calque.errors import DataError
from calque.loader.model.file_formats import OrcFormat
from calque.loader.run.engines.local import LocalEngine
from tests.loader.run.conftest import AB, World
from tests.loader.run.formats.mutants import nested_orc


def test_rows_of_a_format_that_is_read_apart(world: World) -> None:
    """They come back from the process that read them, cast to the table."""
    out = io.BytesIO()
    orc.write_table(pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]}), out)
    plan = world.plan([world.put("f.orc", out.getvalue())], format=OrcFormat())
    found = LocalEngine().sample(plan, 2)
    assert found.to_pylist() == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    assert found.schema == AB


def test_a_file_that_crashes_its_library(world: World) -> None:
    """It costs the sample, by an error of ours, and not the caller's process."""
    plan = world.plan([world.put("f.orc", nested_orc(200_000))], format=OrcFormat())
    with pytest.raises(DataError, match="ORC crashed over a file"):
        LocalEngine().sample(plan, 2)
