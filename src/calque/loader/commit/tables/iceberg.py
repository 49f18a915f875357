"""Iceberg tables: the marker of a load stands in a snapshot's summary and in a table property.

``pyiceberg`` retries commits by itself and does not look for duplicates when it does, so a table
is only used with ``commit.retry.num-retries = 0``: then a commit is a compare-and-set on the head
of ``main``. Every marker commit makes a snapshot, since a commit of properties alone would not
fence off an append that runs at the same time.

Snapshots expire and their summaries with them. The property outlives them until the load is
finalised; after that a straggler of the load finds that the snapshots since its claim are gone
too (older ones expire first), and is refused instead of guessing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from types import MappingProxyType
from typing import Any, cast

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.table import Table, TableProperties, Transaction
from pyiceberg.table.snapshots import ancestors_of
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import PrimitiveType

from calque.errors import CalqueError, DataError, Unsupported
from calque.ledger import TableKey
from calque.loader.commit.tables.base import Change, Committed, Draft, Mark, Marker, Snapshot
from calque.loader.commit.tables.errors import ICEBERG, map_errors
from calque.loader.commit.tables.iceberg_files import (
    bounds_as_bytes,
    by_field_id,
    file_stats,
    partition_value,
    plain_schema,
)
from calque.loader.commit.tables.storage import iceberg_properties
from calque.loader.model.data_file import DataFile
from calque.loader.model.plan import TargetSchema
from calque.loader.request.service_options import service_options
from calque.loader.run.writing.table_root import TableRoot
from calque.operator import Operator
from calque.values import Backoff

RETRIES = TableProperties.COMMIT_NUM_RETRIES
NAMES = TableProperties.DEFAULT_NAME_MAPPING
PROPERTY = "calque.load."
SUMMARY_LOAD, SUMMARY_MARK, SUMMARY_SOURCES = "calque.load", "calque.mark", "calque.sources"
_TRIES = 5
_BACKOFF = Backoff(first=0.05, factor=1.0, jitter=1.0)


class IcebergLake:
    """An Iceberg table by its catalog and identifier."""

    kind = "iceberg"
    data_prefix = "data/"

    def __init__(
        self,
        catalog: Catalog,
        identifier: tuple[str, ...],
        *,
        catalog_name: str,
        display: str,
        location: str | None = None,
        options: Mapping[str, object] | None = None,
    ) -> None:
        self._catalog = catalog
        self._identifier = identifier
        self._catalog_name = catalog_name
        self._location = location
        self.display = display
        self.options = dict(options or {})
        self._own = frozenset(catalog.properties)
        self._drafted: Table | None = None

    @cached_property
    def root(self) -> str:
        folder = self.place.operator.location(self.place.full("data"))
        return folder.removesuffix("/data")

    @cached_property
    def place(self) -> TableRoot:
        location = (self._drafted or self._load()).location()
        return TableRoot.at(location, service_options(location, self.options, self.display))

    def _load(self) -> Table:
        with map_errors(ICEBERG, self.display):
            self._hand_over()
            return self._catalog.load_table(self._identifier)

    def _hand_over(self) -> None:
        """Let the catalog's files be reached as ours are; what the catalog was told itself rules.

        Done before each use, since credentials may be of the hour only.
        """
        if self._files is not None:
            told = iceberg_properties(self._files, self.options)
            self._catalog.properties.update(
                {name: value for name, value in told.items() if name not in self._own}
            )

    @cached_property
    def _files(self) -> Operator | None:
        """The service that holds the catalog's tables, as far as that is known beforehand."""
        told = self._location or self._catalog.properties.get("warehouse") or ""
        if "://" not in told or told.startswith("file:"):
            return None
        return Operator.locate(told, **cast(Any, self.options))[0]

    def open(self) -> IcebergSnapshot:
        snapshot = self.look()
        snapshot.refuse_unsupported()
        return snapshot

    def look(self) -> IcebergSnapshot:
        return IcebergSnapshot(self._load(), self.display)

    def draft(
        self,
        schema: pa.Schema,
        partition_by: Sequence[str],
        properties: Mapping[str, str] = MappingProxyType({}),
    ) -> Draft:
        """A transaction that makes the table, and is committed when the draft is published."""
        self._until_there(self._make_namespace, self._has_namespace)
        with map_errors(ICEBERG, self.display):
            self._hand_over()
            transaction = self._catalog.create_table_transaction(
                self._identifier,
                schema,
                location=self._location,
                properties={RETRIES: "0", **properties},
            )
            # Copied Parquet files carry no field ids; by the mapping readers find their columns.
            mapping = transaction.table_metadata.schema().name_mapping.model_dump_json()
            with transaction.update_spec() as spec:
                for column in partition_by:
                    spec.add_identity(column)
            transaction.set_properties({NAMES: mapping})
        self._drafted = _as_it_will_be(transaction, self._catalog)
        for known in ("root", "place", "_schema"):  # of an earlier draft that came to nothing
            self.__dict__.pop(known, None)
        snapshot = IcebergSnapshot(self._drafted, self.display)
        return Draft(snapshot, lambda: self._publish(transaction))

    def _publish(self, transaction: Transaction) -> None:
        self._until_there(
            transaction.commit_transaction,
            lambda: self._catalog.table_exists(self._identifier),
        )

    def _make_namespace(self) -> None:
        with suppress(NamespaceAlreadyExistsError):
            self._catalog.create_namespace(self._identifier[:-1])

    def _has_namespace(self) -> bool:
        return self._catalog.namespace_exists(self._identifier[:-1])

    def _until_there(self, make: Callable[[], object], is_there: Callable[[], bool]) -> None:
        """Catalogs tell a lost race in many words; what counts is that the thing is there."""
        for attempt in range(1, _TRIES + 1):
            try:
                with map_errors(ICEBERG, self.display):
                    self._hand_over()
                    make()
                return
            except CalqueError:
                with map_errors(ICEBERG, self.display):
                    if is_there():
                        return
                if attempt == _TRIES:
                    raise
                _BACKOFF.sleep(attempt)

    def key(self, snapshot: Snapshot | None) -> TableKey:
        return TableKey(
            catalog=self._catalog_name,
            address=".".join(self._identifier),
            table_id=snapshot.table_id if snapshot else "",
            location=self.root if snapshot else None,
            database=".".join(self._identifier[:-1]),
            name=self._identifier[-1],
        )

    def encode(self, file: DataFile, target: TargetSchema) -> dict[str, Any]:
        return {
            "add": file.path,
            "size": file.size,
            "rows": file.rows,
            "partition": dict(file.partition),
            "stats": file_stats(file, self._schema),
        }

    @cached_property
    def _schema(self) -> Any:
        return (self._drafted or self._load()).schema()


def _as_it_will_be(transaction: Transaction, catalog: Catalog) -> Table:
    """The table that a transaction is about to make."""
    staged = transaction._table
    return Table(
        staged.name(),
        metadata=transaction.table_metadata,
        metadata_location=staged.metadata_location,
        io=staged.io,
        catalog=catalog,
    )


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
        return int(getattr(self._table.metadata, "last_sequence_number", 0))

    @cached_property
    def target(self) -> TargetSchema:
        schema = self._table.schema()
        return TargetSchema(
            schema=plain_schema(schema_to_pyarrow(schema, include_field_ids=True)),
            partition_columns=tuple(
                schema.find_column_name(field.source_id) or ""
                for field in self._table.spec().fields
            ),
            read_by_name=self._table.metadata.name_mapping() is not None,
            partitions_in_file=True,
        )

    @property
    def properties(self) -> Mapping[str, str]:
        return self._table.properties

    def refuse_unsupported(self) -> None:
        """Refuse tables whose commits are no compare-and-set, and those we cannot fill."""
        if self._table.metadata.format_version < 2:
            raise Unsupported(
                f"table {self._display} has Iceberg format 1, which numbers no commits",
                hint="Upgrade the table to format 2.",
            )
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

    def count_rows(self) -> int | None:
        with map_errors(ICEBERG, self._display):
            return self._table.scan().count()

    def first_rows(self, count: int) -> pa.Table:
        with map_errors(ICEBERG, self._display):
            return self._table.scan(limit=count).to_arrow()

    def marker(self, load_id: str, base_version: int) -> Marker | None:
        for snapshot in reversed(self._table.metadata.snapshots):
            notes = snapshot.summary.additional_properties if snapshot.summary else {}
            if notes.get(SUMMARY_LOAD) == load_id:
                return Marker(Mark(notes[SUMMARY_MARK]), snapshot.sequence_number)
        kept = self._table.properties.get(PROPERTY + load_id)
        if kept is not None:
            word, _, version = kept.partition("@")
            return Marker(Mark(word), int(version) if version else None)
        self._refuse_lost_past(load_id, base_version)
        return None

    def _refuse_lost_past(self, load_id: str, base_version: int) -> None:
        """No marker, and the snapshots since the claim are not all there any more: no answer."""
        numbers = [one.sequence_number or 0 for one in self._table.metadata.snapshots]
        if min(numbers, default=self.version + 1) > base_version + 1:
            raise Unsupported(
                f"table {self._display}: load {load_id} is older than the oldest snapshot, so "
                "whether it was committed cannot be told",
                hint="See `calque ledger show`, compare with the table, and forget or rebuild.",
            )

    def commits(self, since: int) -> list[Committed] | None:
        """From summaries; where snapshots were expired, their markers may have gone as well."""
        found, numbers = [], set()
        for snapshot in self._table.metadata.snapshots:
            number = snapshot.sequence_number or 0
            if number <= since:
                continue
            numbers.add(number)
            notes = snapshot.summary.additional_properties if snapshot.summary else {}
            if SUMMARY_LOAD in notes and notes.get(SUMMARY_MARK) == Mark.COMMITTED:
                found.append(Committed(notes[SUMMARY_LOAD], number))
        if len(numbers) < self.version - since:
            return None
        return sorted(found, key=lambda one: one.version)

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
        with map_errors(ICEBERG, self._display):
            removed = self._find_removed_files(change)
            transaction = self._table.transaction()
            update = transaction.update_snapshot(snapshot_properties=described)
            producer: Any = update.overwrite() if removed else update.fast_append()
            with producer:
                for file in removed:
                    producer.delete_data_file(file)
                for action in change.actions:
                    if "add" in action:
                        producer.append_data_file(self._data_file(action))
            transaction.set_properties({PROPERTY + change.load_id: f"{change.mark}@{number}"})
            if change.drop_markers:
                transaction.remove_properties(*(PROPERTY + one for one in change.drop_markers))
            transaction.commit_transaction()
        return number

    def _find_removed_files(self, change: Change) -> list[IcebergFile]:
        wanted = {self._absolute(one["remove"]) for one in change.actions if "remove" in one}
        if not wanted and not change.truncate:
            return []
        files = [task.file for task in self._table.scan().plan_files()]
        if change.truncate:
            return files
        removed = [file for file in files if file.file_path in wanted]
        if len(removed) < len(wanted):
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
            value_counts=by_field_id(stats["values"]),
            null_value_counts=by_field_id(stats["nulls"]),
            nan_value_counts={},
            lower_bounds=bounds_as_bytes(stats["low"]),
            upper_bounds=bounds_as_bytes(stats["high"]),
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
            kind = cast(PrimitiveType, schema.find_field(field.source_id).field_type)
            value = values.get(schema.find_column_name(field.source_id) or field.name)
            record.append(None if value is None else partition_value(kind, value))
        return Record(*record)

    def _absolute(self, path: str) -> str:
        return f"{self._table.location().rstrip('/')}/{path}"

    def find_restores(self, since: int) -> list[tuple[int, int]]:
        """Snapshots that are no ancestors of the current one were taken back."""
        current = self._table.current_snapshot()
        kept = {one.snapshot_id for one in ancestors_of(current, self._table.metadata)}
        return [
            (number - 1, number)
            for one in self._table.metadata.snapshots
            if one.snapshot_id not in kept and (number := one.sequence_number or 0) > 0
        ]

    def live(self, paths: Iterable[str]) -> dict[str, dict[str, str | None]]:
        wanted = {self._absolute(path): path for path in paths}
        if not wanted:
            return {}
        with map_errors(ICEBERG, self._display):
            tasks = list(self._table.scan().plan_files())
        found = [task for task in tasks if task.file.file_path in wanted]
        if any(task.delete_files for task in found):
            raise Unsupported(f"table {self._display} has deleted rows: rows cannot be replaced")
        return {wanted[task.file.file_path]: self._texts(task.file.partition) for task in found}

    def _texts(self, partition: Record) -> dict[str, str | None]:
        """Partition values as text, which :meth:`_partition` reads back."""
        schema = self._table.schema()
        values: dict[str, str | None] = {}
        for position, field in enumerate(self._table.spec().fields):
            kind = schema.find_field(field.source_id).field_type
            value = partition[position]
            name = schema.find_column_name(field.source_id) or field.name
            values[name] = None if value is None else field.transform.to_human_string(kind, value)
        return values

    def evolve(self, schema: pa.Schema) -> None:
        """Add nullable columns and widen types in one commit; the name mapping follows."""
        have = self.target.schema
        changed = [
            field.with_nullable(True)
            for field in schema
            if field.name not in have.names or have.field(field.name).type != field.type
        ]
        if not changed:
            return
        with map_errors(ICEBERG, self._display):
            transaction = self._table.transaction()
            with transaction.update_schema() as update:
                update.union_by_name(pa.schema(changed))
            mapping = transaction.table_metadata.schema().name_mapping.model_dump_json()
            transaction.set_properties({NAMES: mapping})
            transaction.commit_transaction()
