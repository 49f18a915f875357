"""Parquet: row group by row group, columns by name or position, cast strictly."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from calque.loader.model.file_formats import ParquetFormat
from calque.loader.run.formats.cast.numerals import WHOLE_IN_DOUBLE, numeral
from calque.loader.run.formats.columnar.batch_caster import BatchCaster
from calque.loader.run.formats.columnar.footer_check import Leaf, find_contradiction
from calque.loader.run.formats.guard import first_line
from calque.loader.run.formats.reader import Extent, ParsedBatch, ReadSpec
from calque.loader.run.formats.refusal import Code, FileRefused
from calque.loader.run.formats.staged_source import Source
from calque.values import KIB

_ROWS = 65_536
_SAMPLED = 10_000
_END = 8
"""Length of the footer, and the word that ends a file."""
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

    def read(self) -> Iterator[ParsedBatch]:
        if self._source.size == 0:
            return
        file = open_parquet(self._source)
        caster = BatchCaster(self._source.location, self._spec, file.schema_arrow, self._missing)
        try:
            for batch in file.iter_batches(
                batch_size=_ROWS, columns=caster.wanted_columns, use_threads=False
            ):
                yield caster.parse(batch, self.extent)
        except (pa.ArrowException, OSError) as error:
            raise _damage_error(self._source, error) from error


def open_parquet(source: Source) -> pq.ParquetFile:
    """The file, its footer read; FileRefused where it is no Parquet."""
    try:
        # INT96 in nanoseconds, the default, wraps around before 1678 and after 2262.
        return pq.ParquetFile(
            pa.PythonFile(source.open(), mode="r"),
            pre_buffer=True,
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=True,  # Spark writes them, and a flipped bit is a value too
        )
    except (pa.ArrowInvalid, OSError) as error:
        raise FileRefused.at(
            source.location,
            Code.NOT_THIS_FORMAT,
            f"this is not a Parquet file: {first_line(error)}",
            hint="Name the format that the file has, or stage it again if it was cut off.",
        ) from error


def infer_schema(source: Source, format: ParquetFormat) -> pa.Schema:
    """The file's own schema; of whole numbers a sample tells whether a double would keep them."""
    schema = pa.schema(list(open_parquet(source).schema_arrow))
    wide = [field.name for field in schema if field.type == pa.int64()]
    small = _small_integers(source, wide) if wide else set()
    return pa.schema([field.with_type(SMALL) if field.name in small else field for field in schema])


def _small_integers(source: Source, names: list[str]) -> set[str]:
    """The columns whose first numbers are all within a double's whole ones.

    The footer has statistics, but the library ends the process where they are damaged.
    """
    file = pq.ParquetFile(pa.PythonFile(source.open(), mode="r"), buffer_size=64 * KIB)
    batch = next(file.iter_batches(batch_size=_SAMPLED, columns=names, use_threads=False), None)
    found = {} if batch is None else dict(zip(batch.schema.names, batch.columns, strict=True))
    return {name for name in names if name not in found or _is_within(found[name])}


def _is_within(column: pa.Array) -> bool:
    bounds = pc.min_max(column).as_py()
    low, high = bounds["min"] or 0, bounds["max"] or 0
    return bool(low >= -WHOLE_IN_DOUBLE and high <= WHOLE_IN_DOUBLE)


def footer_of(source: Source) -> pq.FileMetaData:
    """The footer alone; FileRefused where its parts contradict each other.

    Who looks at its column chunks must get it here: over some the library ends the process.
    """
    metadata = open_parquet(source).metadata
    why = find_contradiction(_read_footer(source), _leaves(metadata)) or _find_type_error(metadata)
    if why is not None:
        raise FileRefused.at(
            source.location,
            Code.MALFORMED,
            f"the Parquet file is damaged: its footer contradicts itself: {why}",
        )
    return metadata


def _read_footer(source: Source) -> bytes:
    length = int.from_bytes(source.read_at(source.size - _END, 4), "little")
    return source.read_at(source.size - _END - length, length)


def _leaves(metadata: pq.FileMetaData) -> list[Leaf]:
    columns = (metadata.schema.column(index) for index in range(metadata.num_columns))
    return [
        Leaf(one.max_repetition_level, one.max_definition_level, one.physical_type == "BYTE_ARRAY")
        for one in columns
    ]


def _find_type_error(metadata: pq.FileMetaData) -> str | None:
    """The library ends the process on statistics of another type than their column."""
    for group in range(metadata.num_row_groups):
        found = metadata.row_group(group)
        if found.num_columns != metadata.num_columns:
            return f"row group {group + 1} has {found.num_columns} columns"
        for index in range(found.num_columns):
            if found.column(index).physical_type != metadata.schema.column(index).physical_type:
                return f"column {index + 1} has two types"
    return None


def _damage_error(source: Source, error: Exception) -> FileRefused:
    return FileRefused.at(
        source.location, Code.MALFORMED, f"the Parquet file is damaged: {first_line(error)}"
    )
