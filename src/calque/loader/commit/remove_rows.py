"""Take the rows of some sources out of a data file, by the numbers of those rows.

Needed in two places: a source that changed while it was loaded leaves a data file it shares with
others, and ``on_changed = replace`` removes what an earlier load of a file brought.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq

from calque.loader.model.data_file import DataFile, Span
from calque.loader.run.writing.footer import column_stats, columns_with_nan
from calque.loader.run.writing.table_root import TableRoot

Part = tuple[str, int, int]
"""(data file, first row, rows)."""


def cut(
    root: TableRoot, file: DataFile, gone: Sequence[tuple[int, int]], new_path: str
) -> DataFile:
    """Write ``file`` without the rows ``gone`` (first, count) under a new name."""
    parquet = pq.ParquetFile(pa.BufferReader(root.operator.read(root.full(file.path))))
    schema = parquet.schema_arrow
    keep = bytearray(b"\1") * parquet.metadata.num_rows
    for first, count in gone:
        keep[first : first + count] = bytes(count)
    out = io.BytesIO()
    with_nan: set[str] = set()
    with pq.ParquetWriter(out, schema, compression="zstd", compression_level=1) as writer:
        start = 0
        for batch in parquet.iter_batches():
            mask = keep[start : start + batch.num_rows]
            start += batch.num_rows
            left = batch.filter(pa.array([bool(one) for one in mask]))
            with_nan |= columns_with_nan(left)
            writer.write_batch(left)
    body = out.getvalue()
    root.operator.write(root.full(new_path), body)
    return replace(
        file,
        path=new_path,
        size=len(body),
        rows=sum(keep),
        columns=column_stats(pq.read_metadata(io.BytesIO(body)), with_nan=with_nan),
        spans=tuple(_shift_spans(file.spans, gone)),
    )


def shift(first: int, gone: Iterable[tuple[int, int]]) -> int:
    """Where a row stands after the rows before it were taken out."""
    return first - sum(count for start, count in gone if start < first)


def _shift_spans(spans: Iterable[Span], gone: Sequence[tuple[int, int]]) -> Iterable[Span]:
    removed = set(gone)
    for span in spans:
        if (span.first_row, span.rows) not in removed:
            yield replace(span, first_row=shift(span.first_row, gone))
