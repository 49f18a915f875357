"""Plans over real files, and one Spark session for the whole run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calque.loader.model.data_file import DataFile
from calque.loader.model.error_policy import ErrorMode, ErrorPolicy
from calque.loader.model.file_formats import CsvFormat
from calque.loader.model.outcome import FileOutcome, TaskResult
from calque.loader.model.plan import Engine, Piece, TargetSchema, WritePlan, WriteTask
from calque.loader.model.staged_file import StagedFile
from calque.loader.run.engines.local import LocalEngine
from calque.loader.run.engines.spark import SparkEngine
from calque.operator import Operator
from calque.spark.session import SparkOptions, session
from calque.values import SourceIdentity

AB = pa.schema([("a", pa.int64()), ("b", pa.string())])
CONTINUE = ErrorPolicy(ErrorMode.CONTINUE)


class World:
    """A stage and a table's root in one temporary folder."""

    def __init__(self, root: Path) -> None:
        self.stage = root / "stage"
        self.table = root / "table"
        self.stage.mkdir()
        self.table.mkdir()

    def put(self, name: str, data: bytes) -> StagedFile:
        (self.stage / name).write_bytes(data)
        return self.look(name)

    def look(self, name: str) -> StagedFile:
        operator = Operator.from_uri(str(self.stage))
        location = operator.location(name)
        return StagedFile(location, name, SourceIdentity.of(location, operator.stat(name)))

    def plan(self, files: list[StagedFile], schema: pa.Schema = AB, **options: Any) -> WritePlan:
        target = options.pop("target", TargetSchema(schema=schema))
        return WritePlan(
            load_id=options.pop("load_id", "load"),
            root=str(self.table),
            tasks=(WriteTask(0, tuple(Piece(file) for file in files)),),
            format=options.pop("format", CsvFormat()),
            target=target,
            **options,
        )

    def rows(self, results: list[TaskResult]) -> list[dict[str, Any]]:
        """Every row of the data files that count, in no order."""
        found: list[dict[str, Any]] = []
        for file in data_files(results):
            table = pq.ParquetFile(self.table / file.path).read()
            assert table.num_rows == file.rows
            assert sum(span.rows for span in file.spans) == file.rows
            assert (self.table / file.path).stat().st_size == file.size
            found += [{**row, **file.partition} for row in table.to_pylist()]
        return found


def data_files(results: list[TaskResult]) -> list[DataFile]:
    return [file for result in results for file in result.data_files]


def outcomes(results: list[TaskResult]) -> dict[str, FileOutcome]:
    found = [outcome for result in results for outcome in result.outcomes]
    named = {outcome.location.rpartition("/")[2]: outcome for outcome in found}
    assert len(named) == len(found), "a staged file has one outcome"
    return named


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture(scope="session")
def spark() -> Any:
    """Local mode that retries tasks, as a cluster would; once, for much here fails each time."""
    return session(options=SparkOptions(master="local[2,2]"))


@pytest.fixture(params=["local", "spark"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    if request.param == "local":
        yield LocalEngine(2)
    else:
        yield SparkEngine(request.getfixturevalue("spark"))
