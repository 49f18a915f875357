"""The two halves of a transformation as a Python data source."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from calque.loader.model.plan import WritePlan, WriteTask
from calque.loader.run.task_output import TaskOutput
from calque.loader.run.transform.field_paths import SelectColumns
from calque.loader.run.transform.row_reader import RowReader, source_schema
from calque.loader.run.transform.row_writer import RowWriter

SOURCE_NAME = "calque_transform"


@dataclass(frozen=True, slots=True)
class TransformJob:
    """What is to be done: the plan, its tasks, and the columns of the files."""

    plan: WritePlan
    tasks: tuple[WriteTask, ...]
    columns: SelectColumns

    @property
    def raw(self) -> pa.Schema:
        return self.columns.raw


@dataclass
class TaskDone(WriterCommitMessage):
    """What the writer of one task has made."""

    output: TaskOutput


class TransformSource(DataSource):
    """Reads staged files, and writes transformed rows; the option ``job`` names the folder."""

    @classmethod
    def name(cls) -> str:
        return SOURCE_NAME

    def schema(self) -> StructType:
        job = self._job()
        return from_arrow_schema(source_schema(job.raw, job.plan.format))

    def reader(self, schema: StructType) -> DataSourceReader:
        return TaskRowReader(self._job())

    def writer(self, schema: StructType, overwrite: bool) -> Any:
        return TaskRowWriter(self._job().plan, self.options["job"])

    def _job(self) -> TransformJob:
        job: TransformJob = pickle.loads((Path(self.options["job"]) / "job").read_bytes())
        return job


class TaskRowReader(DataSourceReader):
    """One partition a task. Executors get the plan, and of the tasks each its own."""

    def __init__(self, job: TransformJob) -> None:
        self._tasks: tuple[WriteTask, ...] = job.tasks
        self._read = RowReader(job.plan, job.raw)

    def partitions(self) -> list[InputPartition]:
        tasks, self._tasks = self._tasks, ()
        return [InputPartition(task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return self._read.read_task(cast(WriteTask, partition.value))


class TaskRowWriter(DataSourceArrowWriter):
    """Writes the rows of a task; what winners made is written down for the driver."""

    def __init__(self, plan: WritePlan, folder: str) -> None:
        self._rows = RowWriter(plan)
        self._folder = folder

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskDone:
        return TaskDone(self._rows.write(iterator))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        made = [message.output for message in messages if isinstance(message, TaskDone)]
        (Path(self._folder) / "outputs").write_bytes(pickle.dumps(made))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing to do: data files that no result names are orphans, cleaned by the load."""


def read_outputs(folder: str) -> list[TaskOutput]:
    """What the tasks of a job have made."""
    made: list[TaskOutput] = pickle.loads((Path(folder) / "outputs").read_bytes())
    return made
