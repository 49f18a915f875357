"""What a task writes: rows staged file by staged file, each wholly or not at all."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from calque.loader.model.data_file import DataFile
from calque.loader.model.plan import WritePlan
from calque.loader.run.writing import partition
from calque.loader.run.writing.data_file_writer import DataFileWriter
from calque.loader.run.writing.table_root import TableRoot
from calque.values import MIB

HELD_BYTES = 64 * MIB
"""Rows of a staged file are held back until it ended well; a bigger one gets its own writers."""
PENDING_BYTES = 192 * MIB
"""Over all partitions; beyond it the largest is written out."""


class PartitionWriters:
    """Open data files, one for each partition."""

    def __init__(self, plan: WritePlan, root: TableRoot, names: _Names) -> None:
        self._plan = plan
        self._root = root
        self._names = names
        self._open: dict[partition.Key, DataFileWriter] = {}
        self.closed: list[DataFile] = []
        self._schema = file_schema(plan)
        self._columns = plan.target.partition_columns
        self._keeps_empty = plan.target.partitions_in_file

    def add(self, location: str, batch: pa.RecordBatch) -> None:
        self.put(location, self.split(batch))

    def split(self, batch: pa.RecordBatch) -> list[tuple[partition.Key, pa.RecordBatch]]:
        """The rows by partition. Raises DataError for rows that have none; nothing is written."""
        return list(partition.split_rows(batch, self._columns, keeps_empty=self._keeps_empty))

    def put(self, location: str, parts: list[tuple[partition.Key, pa.RecordBatch]]) -> None:
        for key, rows in parts:
            writer = self._open.get(key) or self._open_writer(key)
            writer.add(location, rows.select(self._schema.names))
            if writer.written_bytes >= self._plan.target_file_bytes:
                self.closed.append(self._open.pop(key).close())
        self._flush_largest()

    def finish(self) -> list[DataFile]:
        """Close every file that is open."""
        while self._open:
            _, writer = self._open.popitem()
            self.closed.append(writer.close())
        return self.closed

    def abandon(self) -> None:
        """Drop what is open and remove what was finished."""
        for writer in self._open.values():
            writer.abandon()
        for file in self.closed:
            self._root.delete(file.path)
        self._open, self.closed = {}, []

    def _flush_largest(self) -> None:
        pending = sum(writer.pending_bytes for writer in self._open.values())
        if pending > PENDING_BYTES:
            max(self._open.values(), key=lambda writer: writer.pending_bytes).flush()

    def _open_writer(self, key: partition.Key) -> DataFileWriter:
        folder = partition.folder_of(self._columns, key)
        path = f"{self._plan.data_prefix}{folder}{self._names.next()}"
        values: Mapping[str, str | None] = dict(zip(self._columns, key, strict=True))
        self._open[key] = writer = DataFileWriter(self._root, path, self._schema, values)
        return writer


class TaskWriter:
    """Writes a task's rows. Per staged file: ``begin``, ``add`` …, then ``keep`` or ``discard``."""

    def __init__(self, plan: WritePlan, root: TableRoot, task: int, attempt: str) -> None:
        self._plan = plan
        self._root = root
        self._names = _Names(plan, task, attempt)
        self._shared = PartitionWriters(plan, root, self._names)
        self._own: PartitionWriters | None = None
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._location = ""

    def begin(self, location: str, *, apart: bool = False) -> None:
        """A staged file follows; ``apart``: a part of one, which never shares a data file."""
        self._location = location
        self._own = PartitionWriters(self._plan, self._root, self._names) if apart else None

    def add(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        if self._own is not None:
            self._own.add(self._location, batch)
            return
        self._held.append(batch)
        self._held_bytes += batch.nbytes
        if self._held_bytes > HELD_BYTES:
            # Too big to hold back: data files of its own can still be dropped if it fails.
            self._own = PartitionWriters(self._plan, self._root, self._names)
            self._release(self._own)

    def keep(self) -> tuple[DataFile, ...]:
        """The staged file ended well; the data files that hold nothing but its rows."""
        if self._own is None:
            self._release(self._shared)
            return ()
        own, self._own = self._own, None
        try:
            return tuple(own.finish())
        except BaseException:
            own.abandon()
            raise

    def discard(self) -> None:
        """Nothing of the staged file stays."""
        self._held, self._held_bytes = [], 0
        if self._own is not None:
            self._own.abandon()
            self._own = None

    def next_path(self) -> str:
        """The path of a data file that is made by copying."""
        return f"{self._plan.data_prefix}{self._names.next()}"

    def finish(self) -> tuple[DataFile, ...]:
        """Close the data files that staged files share."""
        try:
            return tuple(self._shared.finish())
        except BaseException:
            self.abandon()
            raise

    def abandon(self) -> None:
        """Drop everything that is not finished."""
        self.discard()
        self._shared.abandon()

    def _release(self, writers: PartitionWriters) -> None:
        # All are split before the first is put: of a file that fails no row may be shared.
        for parts in [writers.split(batch) for batch in self._held]:
            writers.put(self._location, parts)
        self._held, self._held_bytes = [], 0


class _Names:
    """Names of the data files of one attempt, numbered."""

    def __init__(self, plan: WritePlan, task: int, attempt: str) -> None:
        self._plan = plan
        self._task = task
        self._attempt = attempt
        self._number = 0

    def next(self) -> str:
        self._number += 1
        return self._plan.data_file_name(self._task, self._attempt, self._number)


def file_schema(plan: WritePlan) -> pa.Schema:
    """The columns that stand in data files, with their field ids."""
    left_out = () if plan.target.partitions_in_file else plan.target.partition_columns
    return pa.schema([field for field in plan.target.schema if field.name not in left_out])
