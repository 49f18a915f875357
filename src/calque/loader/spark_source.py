"""``spark.read.format("calque")``: a stage as a DataFrame, with what is known of its files.

::

    from calque.loader.spark_source import register
    register(spark)
    df = (
        spark.read.format("calque")
        .option("type", "csv")
        .option("parse_header", "true")
        .load("s3://landing/sales/")
    )
    df.select("_metadata.file_name", "_metadata.row_number", "amount")

The same reader as a load, with the same options and the same strictness. Rows that do not fit fail
the query with their place, unless ``on_error`` is ``continue``. Give a schema with ``.schema(…)``
to have the files read as that; else it is inferred from a sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from calque.config import load_settings
from calque.errors import DataError, StatementInvalid
from calque.loader.model.file_formats import CsvFormat, FormatOptions
from calque.loader.model.plan import ColumnMatch, MetadataKind, Piece
from calque.loader.model.staged_file import StagedFile
from calque.loader.plan.stage import Stage
from calque.loader.request.options import build_format
from calque.loader.run.cut_into_tasks import pack
from calque.loader.run.formats.reader import ParsedBatch, ReadSpec
from calque.loader.run.formats.registry import open_reader
from calque.loader.run.formats.staged_source import Source
from calque.loader.run.infer import infer_schema
from calque.loader.run.metadata_columns import TYPES, metadata_values
from calque.loader.run.operators import Operators

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

METADATA = "_metadata"
_OWN = ("path", "type", "on_error", "metadata")
_NAMES = {
    "file_path": MetadataKind.FILE,
    "file_name": MetadataKind.NAME,
    "file_size": MetadataKind.SIZE,
    "file_modification_time": MetadataKind.LAST_MODIFIED,
    "etag": MetadataKind.ETAG,
    "row_number": MetadataKind.ROW_NUMBER,
}
_STRUCT = pa.struct([pa.field(name, TYPES[kind]) for name, kind in _NAMES.items()])


def register(spark: SparkSession) -> None:
    """Make ``spark.read.format("calque")`` known to a session."""
    spark.dataSource.register(CalqueSource)


class Files(InputPartition):
    """The staged files that one task reads."""

    def __init__(self, files: tuple[StagedFile, ...]) -> None:
        super().__init__(0)
        self.files = files


class CalqueSource(DataSource):
    """The data source; options are those of FILE_FORMAT, ``type`` names the format."""

    @classmethod
    def name(cls) -> str:
        return "calque"

    def schema(self) -> StructType:
        stage, format = self._open_stage()
        found = infer_schema(list(stage.list()), format, stage.options).schema
        if self._has_metadata():
            found = found.append(pa.field(METADATA, _STRUCT))
        return from_arrow_schema(found)

    def reader(self, schema: StructType) -> DataSourceReader:
        stage, format = self._open_stage()
        files = tuple(stage.list())
        if stage.unnamed:
            one = stage.unnamed[0]
            raise DataError(f"{one.location} cannot be read: {one.why}")
        return StageReader(
            files,
            format,
            to_arrow_schema(schema, timezone="UTC"),
            dict(stage.options),
            skip_bad=self.options.get("on_error", "abort").lower() == "continue",
        )

    def _has_metadata(self) -> bool:
        return self.options.get("metadata", "true").lower() != "false"

    def _open_stage(self) -> tuple[Stage, FormatOptions]:
        path = self.options.get("path")
        if path is None:
            raise StatementInvalid("say what to read: .load('s3://bucket/prefix/')")
        format = _format(dict(self.options.items()))
        return Stage(path, load_settings()), format


class StageReader(DataSourceReader):
    """Reads the files of a stage, packed into partitions by their bytes."""

    def __init__(
        self,
        files: tuple[StagedFile, ...],
        format: FormatOptions,
        schema: pa.Schema,
        options: Mapping[str, object],
        *,
        skip_bad: bool,
    ) -> None:
        self._files = files
        self._format = format
        self._schema = schema
        self._options = options
        self._skip_bad = skip_bad

    def partitions(self) -> list[InputPartition]:
        return [Files(group) for group in pack(self._files)] or [Files(())]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, Files)
        operators = Operators(self._options)
        try:
            for file in partition.files:
                source = Source(*operators.at(file.location), Piece(file))
                for parsed in open_reader(source, self._spec()).read():
                    self._refuse(parsed)
                    yield self._rows(parsed, file)
        finally:
            operators.close()

    def _spec(self) -> ReadSpec:
        fields = [field for field in self._schema if field.name != METADATA]
        headless = isinstance(self._format, CsvFormat) and not self._format.parse_header
        match: ColumnMatch = "position" if headless else "name_insensitive"
        return ReadSpec(format=self._format, schema=pa.schema(fields), match=match, keep_errors=1)

    def _refuse(self, parsed: ParsedBatch) -> None:
        if self._skip_bad or not parsed.rejected:
            return
        error = parsed.errors[0]
        raise DataError(
            f"{error.file}, line {error.line}, record {error.record}, column {error.column}: "
            f"{error.value!r} {error.message}",
            hint="Set on_error to continue to leave such rows out.",
        )

    def _rows(self, parsed: ParsedBatch, file: StagedFile) -> pa.RecordBatch:
        columns = dict(zip(parsed.rows.schema.names, parsed.rows.columns, strict=True))
        if METADATA in self._schema.names:
            wanted = [field.name for field in self._schema.field(METADATA).type]
            parts = [metadata_values(_NAMES[name], parsed, file, "") for name in wanted]
            columns[METADATA] = pa.StructArray.from_arrays(parts, names=wanted)
        arrays = [columns[name] for name in self._schema.names]
        return pa.RecordBatch.from_arrays(arrays, names=self._schema.names).cast(self._schema)


def _format(options: dict[str, str]) -> FormatOptions:
    kind = options.get("type")
    if kind is None:
        raise StatementInvalid(
            "say which format the files have", hint='.option("type", "csv"), json, parquet …'
        )
    pairs = {name: value for name, value in options.items() if name.lower() not in _OWN}
    chosen = build_format(kind, pairs)
    assert chosen is not None, "a kind was given"
    return chosen
