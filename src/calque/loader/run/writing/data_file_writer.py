"""One data file: rows are gathered into row groups and written as Parquet."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from calque.loader.model.data_file import DataFile, Span
from calque.loader.run.writing.encoding import choose_encoding
from calque.loader.run.writing.footer import column_stats, columns_with_nan
from calque.loader.run.writing.sink import Sink
from calque.loader.run.writing.table_root import TableRoot
from calque.values import MIB

ROW_GROUP_ROWS = 1_000_000
ROW_GROUP_BYTES = 96 * MIB
"""In memory, whichever comes first: readers skip by row group and decode one as a whole."""
MOST_BATCHES = 1000
"""Batches of a few rows weigh more than their rows: that many are put together."""


class DataFileWriter:
    """A Parquet file that grows; it is there when :meth:`close` returns, or never."""

    def __init__(
        self, root: TableRoot, path: str, schema: pa.Schema, partition: Mapping[str, str | None]
    ) -> None:
        self._root = root
        self._path = path
        self._schema = schema
        self._partition = partition
        self._pending: list[pa.RecordBatch] = []
        self._sink: Sink | None = None
        self._writer: pq.ParquetWriter | None = None
        self._footer: list[pq.FileMetaData] = []
        self._spans: list[Span] = []
        self._with_nan: set[str] = set()
        self.rows = 0
        self.pending_rows = 0
        self.pending_bytes = 0

    @property
    def written_bytes(self) -> int:
        """Bytes of Parquet so far."""
        return self._sink.size if self._sink is not None else 0

    def add(self, location: str, batch: pa.RecordBatch) -> None:
        """Rows of one staged file, in their order."""
        self._extend_span(location, batch.num_rows)
        self._pending.append(batch)
        self.rows += batch.num_rows
        self.pending_rows += batch.num_rows
        self.pending_bytes += batch.nbytes
        if len(self._pending) > MOST_BATCHES:
            self._pending = pa.Table.from_batches(self._pending).combine_chunks().to_batches()
        if self.pending_rows >= ROW_GROUP_ROWS or self.pending_bytes >= ROW_GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the gathered rows as a row group."""
        if not self._pending:
            return
        table = pa.Table.from_batches(self._pending).cast(self._schema)
        self._pending = []
        self._with_nan |= columns_with_nan(table)
        self.pending_rows = self.pending_bytes = 0
        self._open(table).write_table(table, row_group_size=ROW_GROUP_ROWS)

    def close(self) -> DataFile:
        """Finish the file; the statistics come out of its own footer."""
        try:
            self.flush()
            writer, sink = self._open(self._schema.empty_table()), self._sink
            assert sink is not None
            writer.close()
            sink.close()
        except BaseException:
            self.abandon()
            raise
        return DataFile(
            path=self._path,
            size=sink.size,
            rows=self.rows,
            partition=dict(self._partition),
            columns=column_stats(self._footer[0], with_nan=self._with_nan),
            spans=tuple(self._spans),
        )

    def abandon(self) -> None:
        """Drop the file; nothing of it stays."""
        self._pending = []
        if self._sink is not None:
            self._sink.abandon()

    def _open(self, first: pa.Table) -> pq.ParquetWriter:
        if self._writer is None:
            encoding = choose_encoding(first)
            self._sink = Sink(self._root.operator, self._root.full(self._path))
            self._writer = pq.ParquetWriter(
                self._sink,
                self._schema,
                compression="zstd",
                compression_level=1,
                use_dictionary=encoding.dictionary or False,
                column_encoding=encoding.other or None,
                store_schema=False,
                metadata_collector=self._footer,
            )
        return self._writer

    def _extend_span(self, location: str, rows: int) -> None:
        if self._spans and self._spans[-1].location == location:
            last = self._spans.pop()
            self._spans.append(Span(location, last.first_row, last.rows + rows))
        elif rows:
            self._spans.append(Span(location, self.rows, rows))
