"""A file over which its library brings the process down: that file fails, and nothing else."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.orc
import pytest

from calque.loader.model.file_formats import OrcFormat
from calque.loader.model.plan import Engine, Transformation
from calque.loader.run.engines.spark import SparkEngine
from tests.loader.run.conftest import CONTINUE, World, outcomes
from tests.loader.run.formats.mutants import nested_orc

ONLY = pa.schema([("only", pa.int64())])


def orc_file() -> bytes:
    out = pa.BufferOutputStream()
    pa.orc.write_table(pa.table({"only": [1, 2, 3]}), out)
    return out.getvalue().to_pybytes()


@pytest.mark.parametrize("selects", [False, True])
def test_it_alone_fails(world: World, engine: Engine, selects: bool) -> None:
    """On either engine, read as it is or through a SELECT, and the error says what happened."""
    if selects and not isinstance(engine, SparkEngine):
        pytest.skip("SQL is Spark's")
    files = [
        world.put("a.orc", orc_file()),
        world.put("b.orc", nested_orc(200_000)),
        world.put("c.orc", orc_file()),
    ]
    chosen = Transformation(("`only` + 1",), ("only",)) if selects else None
    options: dict[str, Any] = {"format": OrcFormat(), "on_error": CONTINUE, "match": "name"}
    results = list(engine.run(world.plan(files, ONLY, transformation=chosen, **options)))
    found = {name: outcome.status for name, outcome in outcomes(results).items()}
    assert found == {"a.orc": "LOADED", "b.orc": "FAILED", "c.orc": "LOADED"}
    assert "crashed over it" in (outcomes(results)["b.orc"].message or "")
    first = 2 if selects else 1
    assert sorted(row["only"] for row in world.rows(results)) == sorted(
        2 * [first, first + 1, first + 2]
    )
