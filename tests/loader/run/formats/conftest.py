"""Staged files of a test, read the way a task reads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from calque.loader.model.file_formats import FormatOptions
from calque.loader.model.outcome import RowError
from calque.loader.model.plan import Piece
from calque.loader.model.staged_file import StagedFile
from calque.loader.run.formats import ParsedBatch, ReadSpec, Source, open_reader
from calque.loader.run.formats.reader import Extent
from calque.operator import Operator
from calque.values import SourceIdentity


@dataclass
class Result:
    """All that a reader gave for one piece."""

    parsed: list[ParsedBatch]
    extent: Extent
    source: Source

    @property
    def rows(self) -> list[dict[str, object]]:
        return [row for batch in self.parsed for row in batch.rows.to_pylist()]

    @property
    def errors(self) -> list[RowError]:
        return [error for batch in self.parsed for error in batch.errors]

    @property
    def records(self) -> int:
        return sum(batch.records for batch in self.parsed)

    @property
    def rejected(self) -> int:
        return sum(len(batch.rejected) for batch in self.parsed)


Read = Callable[..., Result]


@dataclass
class Stage:
    """A directory of staged files."""

    root: Path

    def staged(self, name: str, data: bytes) -> StagedFile:
        (self.root / name).write_bytes(data)
        operator = Operator.from_uri(str(self.root))
        location = operator.location(name)
        return StagedFile(location, name, SourceIdentity.of(location, operator.stat(name)))

    def source(self, file: StagedFile, offset: int = 0, length: int | None = None) -> Source:
        operator = Operator.from_uri(str(self.root))
        return Source(operator, file.name, Piece(file, offset, length))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    root = tmp_path / "stage"
    root.mkdir()
    return Stage(root)


@pytest.fixture
def read(stage: Stage) -> Read:
    def run(
        data: bytes,
        format: FormatOptions,
        fields: list[tuple[str, pa.DataType]] | pa.Schema,
        *,
        name: str = "file.csv",
        offset: int = 0,
        length: int | None = None,
        **spec: object,
    ) -> Result:
        schema = fields if isinstance(fields, pa.Schema) else pa.schema(fields)
        source = stage.source(stage.staged(name, data), offset, length)
        reader = open_reader(source, ReadSpec(format=format, schema=schema, **spec))  # type: ignore[arg-type]
        parsed = list(reader.read())
        return Result(parsed, reader.extent, source)

    return run
