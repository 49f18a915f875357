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
from calque.loader.run.task import TaskOutput
from calque.loader.run.transform.field_paths import Columns
from calque.loader.run.transform.read_rows import ReadTask, source_schema
from calque.loader.run.transform.write_rows import WriteRows

NAME = "calque_transform"


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be done: the plan, its tasks, and the columns of the files."""

    plan: WritePlan
    tasks: tuple[WriteTask, ...]
    columns: Columns

    @property
    def raw(self) -> pa.Schema:
        return self.columns.raw


@dataclass
class Done(WriterCommitMessage):
    """What the writer of one task has made."""

    output: TaskOutput


class TransformSource(DataSource):
    """Reads staged files, and writes transformed rows; the option ``order`` names the folder."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        order = self._order()
        return from_arrow_schema(source_schema(order.raw, order.plan.format))

    def reader(self, schema: StructType) -> DataSourceReader:
        return TaskReader(self._order())

    def writer(self, schema: StructType, overwrite: bool) -> Any:
        return TaskRows(self._order().plan, self.options["order"])

    def _order(self) -> Order:
        order: Order = pickle.loads((Path(self.options["order"]) / "order").read_bytes())
        return order


class TaskReader(DataSourceReader):
    """One partition a task. Executors get the plan, and of the tasks each its own."""

    def __init__(self, order: Order) -> None:
        self._tasks: tuple[WriteTask, ...] = order.tasks
        self._read = ReadTask(order.plan, order.raw)

    def partitions(self) -> list[InputPartition]:
        tasks, self._tasks = self._tasks, ()
        return [InputPartition(task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return self._read.task(cast(WriteTask, partition.value))


class TaskRows(DataSourceArrowWriter):
    """Writes the rows of a task; what winners made is written down for the driver."""

    def __init__(self, plan: WritePlan, folder: str) -> None:
        self._rows = WriteRows(plan)
        self._folder = folder

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Done:
        return Done(self._rows.write(iterator))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        made = [message.output for message in messages if isinstance(message, Done)]
        (Path(self._folder) / "outputs").write_bytes(pickle.dumps(made))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing to do: data files that no result names are orphans, cleaned by the load."""


def outputs(folder: str) -> list[TaskOutput]:
    """What the tasks of an order have made."""
    made: list[TaskOutput] = pickle.loads((Path(folder) / "outputs").read_bytes())
    return made
