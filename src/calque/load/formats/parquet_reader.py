"""Parquet: row group by row group, columns by name or position, cast strictly."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from calque.load.formats.columnar import Columnar
from calque.load.formats.numerals import WHOLE_IN_DOUBLE, numeral
from calque.load.formats.reading import Extent, Parsed, ReadSpec
from calque.load.formats.reject import Code, FileRefused
from calque.load.formats.source import Source
from calque.load.work import ParquetFormat

_ROWS = 65_536
SMALL = numeral(16, 0, True, True)
"""Whole numbers that a double keeps."""


class ParquetReader:
    """Reads one Parquet file; a record is a row, and there are no lines."""

    def __init__(self, source: Source, spec: ReadSpec) -> None:
        assert isinstance(spec.format, ParquetFormat)
        self._source = source
        self._spec = spec
        self._missing = spec.format.missing_field
        self.extent = Extent()

    def read(self) -> Iterator[Parsed]:
        if self._source.size == 0:
            return
        file = open_parquet(self._source)
        columnar = Columnar(self._source.location, self._spec, file.schema_arrow, self._missing)
        try:
            for batch in file.iter_batches(
                batch_size=_ROWS, columns=columnar.wanted, use_threads=False
            ):
                yield columnar.parsed(batch, self.extent)
        except (pa.ArrowException, OSError) as error:
            raise _damaged(self._source, error) from error


def open_parquet(source: Source) -> pq.ParquetFile:
    """The file, its footer read; FileRefused where it is no Parquet."""
    try:
        return pq.ParquetFile(pa.PythonFile(source.open(), mode="r"), pre_buffer=True)
    except (pa.ArrowInvalid, OSError) as error:
        raise FileRefused.at(
            source.location,
            Code.NOT_THIS_FORMAT,
            f"this is not a Parquet file: {_first_line(error)}",
            hint="Name the format that the file has, or stage it again if it was cut off.",
        ) from error


def infer_schema(source: Source, format: ParquetFormat) -> pa.Schema:
    """The file's own schema. The footer tells of whole numbers whether a double would keep them."""
    file = open_parquet(source)
    small = _small_integers(file.metadata)
    return pa.schema(
        [
            field.with_type(SMALL) if field.name in small and field.type == pa.int64() else field
            for field in file.schema_arrow
        ]
    )


def _small_integers(metadata: pq.FileMetaData) -> set[str]:
    """Columns of which every row group says that its numbers are within a double's whole ones."""
    small: dict[str, bool] = {}
    for group in range(metadata.num_row_groups):
        for index in range(metadata.num_columns):
            column = metadata.row_group(group).column(index)
            within = _is_within(column.statistics) if column.physical_type == "INT64" else False
            small[column.path_in_schema] = small.get(column.path_in_schema, True) and within
    return {name for name, within in small.items() if within}


def _is_within(statistics: pq.Statistics | None) -> bool:
    if statistics is None or not statistics.has_min_max:
        return False
    low, high = statistics.min_raw, statistics.max_raw
    return bool(-WHOLE_IN_DOUBLE <= low <= high <= WHOLE_IN_DOUBLE)


def footer_of(source: Source) -> pq.FileMetaData:
    """The footer alone."""
    return open_parquet(source).metadata


def _damaged(source: Source, error: Exception) -> FileRefused:
    return FileRefused.at(
        source.location, Code.MALFORMED, f"the Parquet file is damaged: {_first_line(error)}"
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
