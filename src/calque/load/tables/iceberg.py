"""Iceberg tables: the marker of a load stands in a snapshot's summary and in a table property.

``pyiceberg`` retries commits by itself and does not look for duplicates when it does, so a table
is only used with ``commit.retry.num-retries = 0``: then a commit is a compare-and-set on the head
of ``main``. Every marker commit makes a snapshot, since a commit of properties alone would not
fence off an append that runs at the same time.

Snapshots expire and their summaries with them. The property outlives them until the load is
finalised; after that a straggler of the load finds that the snapshot it was claimed on is gone
too (older ones expire first), and is refused instead of guessing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.conversions import partition_to_py, to_bytes
from pyiceberg.exceptions import (
    NamespaceAlreadyExistsError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table import Table, TableProperties
from pyiceberg.table.snapshots import ancestors_of
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import BinaryType, FixedType, PrimitiveType, StringType, UUIDType

from calque.errors import DataError, NotFound, Unsupported
from calque.ledger import TableKey
from calque.load.manifest import ColumnStats, DataFile
from calque.load.tables.base import Change, Mark, Marker, Snapshot
from calque.load.tables.errors import ICEBERG, mapped
from calque.load.tables.stats import text_above
from calque.load.work import TargetSchema
from calque.operator import Operator

RETRIES = TableProperties.COMMIT_NUM_RETRIES
PROPERTY = "calque.load."
SUMMARY_LOAD, SUMMARY_MARK, SUMMARY_SOURCES = "calque.load", "calque.mark", "calque.sources"


class IcebergLake:
    """An Iceberg table by its catalog and identifier."""

    kind = "iceberg"
    data_prefix = "data/"

    def __init__(
        self,
        catalog: Catalog,
        identifier: tuple[str, ...],
        *,
        database: str,
        display: str,
        location: str | None = None,
    ) -> None:
        self._catalog = catalog
        self._identifier = identifier
        self._database = database
        self._location = location
        self.display = display

    @cached_property
    def root(self) -> str:
        return _canonical(self._load().location())

    def _load(self) -> Table:
        with mapped(ICEBERG, self.display):
            return self._catalog.load_table(self._identifier)

    def open(self) -> IcebergSnapshot:
        snapshot = IcebergSnapshot(self._load(), self.display)
        snapshot.refuse_unsupported()
        return snapshot

    def create(self, schema: pa.Schema, partition_by: Sequence[str]) -> None:
        with mapped(ICEBERG, self.display):
            try:
                self._catalog.create_namespace(self._identifier[:-1])
            except NamespaceAlreadyExistsError:
                pass
            try:
                self._create(schema, partition_by)
            except TableAlreadyExistsError:
                return

    def _create(self, schema: pa.Schema, partition_by: Sequence[str]) -> None:
        properties = {RETRIES: "0"}
        transaction = self._catalog.create_table_transaction(
            self._identifier, schema, location=self._location, properties=properties
        )
        with transaction, transaction.update_spec() as spec:
            for column in partition_by:
                spec.add_identity(column)
        table = self._catalog.load_table(self._identifier)
        # Copied Parquet files carry no field ids; the mapping lets every reader find their columns.
        with table.transaction() as naming:
            naming.set_properties(
                **{
                    TableProperties.DEFAULT_NAME_MAPPING: (
                        table.schema().name_mapping.model_dump_json()
                    )
                }
            )

    def key(self, snapshot: Snapshot) -> TableKey:
        return TableKey(self._database, ".".join(self._identifier), snapshot.table_id, self.root)

    def encode(self, file: DataFile, target: TargetSchema) -> dict[str, Any]:
        return {
            "add": file.path,
            "size": file.size,
            "rows": file.rows,
            "partition": dict(file.partition),
            "stats": _stats(file, self._load().schema()),
        }


class IcebergSnapshot:
    """An Iceberg table at one state of its metadata."""

    def __init__(self, table: Table, display: str) -> None:
        self._table = table
        self._display = display

    @property
    def table_id(self) -> str:
        return str(self._table.metadata.table_uuid)

    @property
    def version(self) -> int:
        return int(self._table.metadata.last_sequence_number)

    @cached_property
    def target(self) -> TargetSchema:
        spec = self._table.spec()
        schema = self._table.schema()
        return TargetSchema(
            schema=_plain(schema_to_pyarrow(schema, include_field_ids=True)),
            partition_columns=tuple(
                schema.find_column_name(field.source_id) or "" for field in spec.fields
            ),
            read_by_name=self._table.metadata.name_mapping() is not None,
            partitions_in_file=True,
        )

    def refuse_unsupported(self) -> None:
        """Refuse tables on which a commit would not be a compare-and-set, or that we cannot fill."""
        if self._table.metadata.properties.get(RETRIES) != "0":
            raise Unsupported(
                f"table {self._display} lets its library repeat commits, which can double rows",
                hint=f"Set the table property {RETRIES} to 0, then load again.",
            )
        for field in self._table.spec().fields:
            if not isinstance(field.transform, IdentityTransform):
                raise Unsupported(
                    f"table {self._display} is partitioned by {field.transform}; "
                    "calque fills partitions by column only"
                )

    def marker(self, load_id: str, base_version: int) -> Marker | None:
        for snapshot in reversed(self._table.metadata.snapshots):
            summary = snapshot.summary
            if summary is not None and summary.additional_properties.get(SUMMARY_LOAD) == load_id:
                mark = Mark(summary.additional_properties[SUMMARY_MARK])
                return Marker(mark, snapshot.sequence_number)
        kept = self._table.properties.get(PROPERTY + load_id)
        if kept is not None:
            mark, _, version = kept.partition("@")
            return Marker(Mark(mark), int(version) if version else None)
        self._refuse_lost_past(load_id, base_version)
        return None

    def _refuse_lost_past(self, load_id: str, base_version: int) -> None:
        """No marker, and the snapshots since the claim are not all there any more: no answer."""
        numbers = [one.sequence_number or 0 for one in self._table.metadata.snapshots]
        if base_version > 0 and min(numbers, default=base_version) > base_version:
            raise Unsupported(
                f"table {self._display}: load {load_id} is older than the oldest snapshot, so "
                "whether it was committed cannot be told",
                hint="See `calque ledger show`, compare with the table, and forget or rebuild.",
            )

    def markers(self) -> Sequence[str]:
        return [
            name.removeprefix(PROPERTY)
            for name, value in self._table.properties.items()
            if name.startswith(PROPERTY) and value.startswith(Mark.COMMITTED)
        ]

    def commit(self, change: Change) -> int:
        number = self.version + 1
        described = {SUMMARY_LOAD: change.load_id, SUMMARY_MARK: str(change.mark)}
        if change.sidecar:
            described[SUMMARY_SOURCES] = change.sidecar
        with mapped(ICEBERG, self._display):
            removed = self._removed(change)
            transaction = self._table.transaction()
            update = transaction.update_snapshot(snapshot_properties=described)
            with update.overwrite() if removed else update.fast_append() as producer:
                for file in removed:
                    producer.delete_data_file(file)
                for action in change.actions:
                    if "add" in action:
                        producer.append_data_file(self._data_file(action))
            transaction.set_properties(**{PROPERTY + change.load_id: f"{change.mark}@{number}"})
            if change.drop_markers:
                transaction.remove_properties(*(PROPERTY + one for one in change.drop_markers))
            transaction.commit_transaction()
        return number

    def _removed(self, change: Change) -> list[IcebergFile]:
        wanted = {self._absolute(one["remove"]) for one in change.actions if "remove" in one}
        if not wanted and not change.truncate:
            return []
        tasks = list(self._table.scan().plan_files())
        removed = [task.file for task in tasks if change.truncate or task.file.file_path in wanted]
        if not change.truncate and len(removed) < len(wanted):
            raise DataError(
                f"table {self._display}: rows to be replaced were moved by another tool",
                hint="Compaction rewrote their data files. Use on_changed=reload or skip.",
            )
        return removed

    def _data_file(self, action: Mapping[str, Any]) -> IcebergFile:
        stats = action["stats"]
        made = IcebergFile.from_args(
            content=DataFileContent.DATA,
            file_path=self._absolute(action["add"]),
            file_format=FileFormat.PARQUET,
            partition=self._partition(action["partition"]),
            record_count=action["rows"],
            file_size_in_bytes=action["size"],
            column_sizes={},
            value_counts=_numbered(stats["values"]),
            null_value_counts=_numbered(stats["nulls"]),
            nan_value_counts={},
            lower_bounds=_bytes(stats["low"]),
            upper_bounds=_bytes(stats["high"]),
            key_metadata=None,
            split_offsets=None,
            equality_ids=None,
            sort_order_id=None,
        )
        made.spec_id = self._table.spec().spec_id
        return made

    def _partition(self, values: Mapping[str, str | None]) -> Record:
        schema = self._table.schema()
        record = []
        for field in self._table.spec().fields:
            source = schema.find_field(field.source_id)
            value = values.get(schema.find_column_name(field.source_id) or field.name)
            record.append(None if value is None else _partition_value(source.field_type, value))
        return Record(*record)

    def _absolute(self, path: str) -> str:
        return f"{self._table.location().rstrip('/')}/{path}"

    def restored(self, since: int) -> list[tuple[int, int]]:
        """Snapshots that are no ancestors of the current one were taken back."""
        current = self._table.current_snapshot()
        if since < 0:
            return []
        kept = {one.snapshot_id for one in ancestors_of(current, self._table.metadata)}
        return [
            (number - 1, number)
            for one in self._table.metadata.snapshots
            if one.snapshot_id not in kept and (number := one.sequence_number or 0) > 0
        ]

    def live(self, paths: Iterable[str]) -> set[str]:
        wanted = {self._absolute(path): path for path in paths}
        if not wanted:
            return set()
        with mapped(ICEBERG, self._display):
            tasks = list(self._table.scan().plan_files())
        found = [task for task in tasks if task.file.file_path in wanted]
        if any(task.delete_files for task in found):
            raise Unsupported(f"table {self._display} has deleted rows: rows cannot be replaced")
        return {wanted[task.file.file_path] for task in found}

    def evolve(self, schema: pa.Schema) -> None:
        """Add nullable columns and widen types in one commit, the name mapping with them."""
        have = self.target.schema
        with mapped(ICEBERG, self._display), self._table.transaction() as transaction:
            with transaction.update_schema() as update:
                new = [field for field in schema if field.name not in have.names]
                if new:
                    update.union_by_name(pa.schema([one.with_nullable(True) for one in new]))
                for field in schema:
                    index = have.get_field_index(field.name)
                    if index >= 0 and have.field(index).type != field.type:
                        update.update_column(field.name, _iceberg_type(field))


def _iceberg_type(field: pa.Field) -> PrimitiveType:
    from pyiceberg.io.pyarrow import _ConvertToIcebergWithoutIDs, visit_pyarrow

    return visit_pyarrow(field.type, _ConvertToIcebergWithoutIDs())


def _partition_value(kind: Any, value: str) -> Any:
    return partition_to_py(kind, value)


def _stats(file: DataFile, schema: Schema) -> dict[str, dict[str, Any]]:
    """Counts and bounds by field id, bounds as hexadecimal text."""
    values: dict[str, int] = {}
    nulls: dict[str, int] = {}
    low: dict[str, str] = {}
    high: dict[str, str] = {}
    for name, column in file.columns.items():
        try:
            field = schema.find_field(name)
        except ValueError:
            continue
        if not isinstance(field.field_type, PrimitiveType):
            continue
        number = str(field.field_id)
        values[number], nulls[number] = file.rows, column.nulls
        bounds = _bounds(field.field_type, column)
        if bounds is not None:
            low[number], high[number] = bounds
    return {"values": values, "nulls": nulls, "low": low, "high": high}


def _bounds(kind: PrimitiveType, column: ColumnStats) -> tuple[str, str] | None:
    low, high = column.low, column.high
    if low is None or high is None or isinstance(kind, BinaryType | FixedType | UUIDType):
        return None
    if isinstance(kind, StringType):
        if not isinstance(low, str) or (top := text_above(high)) is None:
            return None
        low, high = low[:32], top
    try:
        return to_bytes(kind, low).hex(), to_bytes(kind, high).hex()
    except (TypeError, ValueError, OverflowError, AttributeError):
        return None  # a bound is help for readers, never a must


def _numbered(counts: Mapping[str, int]) -> dict[int, int]:
    return {int(number): count for number, count in counts.items()}


def _bytes(bounds: Mapping[str, str]) -> dict[int, bytes]:
    return {int(number): bytes.fromhex(bound) for number, bound in bounds.items()}


def _canonical(location: str) -> str:
    operator, path = Operator.locate(location.rstrip("/") + "/data")
    return operator.location(path).removesuffix("/data")


def _plain(schema: pa.Schema) -> pa.Schema:
    """Without the large variants that pyiceberg asks for: Parquet has no such difference."""
    return pa.schema([_plain_field(field) for field in schema], metadata=schema.metadata)


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(_plain_type(field.type))


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_large_list(kind) or pa.types.is_list(kind):
        return pa.list_(_plain_field(kind.value_field))
    if pa.types.is_struct(kind):
        return pa.struct([_plain_field(kind.field(index)) for index in range(kind.num_fields)])
    if pa.types.is_map(kind):
        return pa.map_(_plain_field(kind.key_field), _plain_field(kind.item_field))
    return kind


def missing(error: Exception) -> bool:
    """Whether an error says that the table is not there."""
    return isinstance(error, NoSuchTableError | NotFound)
