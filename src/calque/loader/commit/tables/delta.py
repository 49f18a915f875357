"""Delta tables: the marker of a load is a transaction identifier in the log.

``deltalake`` commits with ``max_commit_retries=0``, which makes a commit a compare-and-set on the
version that was read. A commit that carries our app id stays findable through checkpoints.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

from deltalake import CommitProperties, DeltaTable, Field, Schema
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction, Transaction

from calque.errors import (
    AlreadyExists,
    ConditionNotMatch,
    DataError,
    InvalidInput,
    NotFound,
    Unsupported,
)
from calque.late_module import LateModule
from calque.ledger import TableKey
from calque.loader.commit.tables.base import Change, Committed, Draft, Mark, Marker, Snapshot
from calque.loader.commit.tables.delta_log import read_commits
from calque.loader.commit.tables.errors import DELTA, map_error, map_errors
from calque.loader.commit.tables.log_mirror import LogMirror, publish_writes
from calque.loader.commit.tables.storage import delta_options
from calque.loader.model.data_file import DataFile
from calque.loader.model.plan import TargetSchema
from calque.loader.run.writing.table_root import TableRoot

if TYPE_CHECKING:
    import pyarrow as pa

    from calque.loader.commit.tables import delta_rows, stats
    from calque.loader.request import type_names
else:
    # The library needs no Arrow to say which version a table has, and what was loaded into it.
    pa = LateModule("pyarrow")
    delta_rows = LateModule("calque.loader.commit.tables.delta_rows")
    stats = LateModule("calque.loader.commit.tables.stats")
    type_names = LateModule("calque.loader.request.type_names")

MARKS = {1: Mark.COMMITTED, 2: Mark.ABORTED}
OURS = "calque/"
FIRST_ENTRY = f"_delta_log/{0:020}.json"
NUMBERS = {mark: number for number, mark in MARKS.items()}


def app_id(load_id: str) -> str:
    return OURS + load_id


class DeltaLake:
    """A Delta table by its location."""

    kind = "delta"
    data_prefix = ""

    def __init__(
        self,
        location: str,
        *,
        display: str | None = None,
        options: Mapping[str, object] | None = None,
        words: tuple[str, str] | None = None,
    ) -> None:
        """``words`` are the user's for database and table; else the location gives them."""
        self.options = dict(options or {})
        self.place = TableRoot.at(location, self.options)
        folder = self.place.operator.location(self.place.full("_delta_log"))
        self.root = _resolve_links(folder.removesuffix("/_delta_log"))
        self._words = words or _words_of(self.root)
        self._log = LogMirror.of(self.place)
        self.display = display or location

    @property
    def uri(self) -> str:
        """The location in the words of deltalake."""
        if self._log is not None:
            return self._log.folder
        for scheme in ("fs://", "file://"):
            if self.root.startswith(scheme):
                return self.root.removeprefix(scheme)
        return self.root

    def open(self) -> DeltaSnapshot:
        snapshot = self.look()
        snapshot.refuse_unsupported()
        return snapshot

    def look(self) -> DeltaSnapshot:
        with map_errors(DELTA, self.display):
            storage = self._storage()
            if self._log is not None:
                self._log.pull()
            try:
                table = DeltaTable(self.uri, storage_options=storage)
            except TableNotFoundError as error:
                raise NotFound(
                    f"there is no Delta table at {self.root}",
                    hint="Check its spelling; see what there is with: calque tables",
                ) from error
            except DeltaError:
                if os.path.isfile(self.uri):
                    raise InvalidInput(f"{self.root} is a file, and no table") from None
                raise
        return DeltaSnapshot(table, self.display, storage, self.place, self._log)

    def _storage(self) -> dict[str, str] | None:
        return None if self._log else delta_options(self.place.operator, self.options)

    def draft(
        self,
        schema: pa.Schema,
        partition_by: Sequence[str],
        properties: Mapping[str, str] = MappingProxyType({}),
    ) -> Draft:
        """The library makes the table aside; what it wrote becomes the first entry of the log."""
        kept = self._schema(schema)
        with (
            tempfile.TemporaryDirectory(prefix="calque-") as aside,
            map_errors(DELTA, self.display),
        ):
            table = DeltaTable.create(
                aside,
                kept,
                partition_by=list(partition_by),
                configuration=dict(properties),
                raise_if_key_not_exists=False,
            )
            entry = self._relocate((Path(aside) / FIRST_ENTRY).read_text())
        return Draft(
            DeltaSnapshot(table, self.display, None, self.place, self._log),
            lambda: self._publish(entry),
        )

    def _relocate(self, entry: str) -> bytes:
        """The entry as if the table had been made where it will be."""
        location = self.uri if self._log is None else self.root
        actions = [json.loads(line) for line in entry.splitlines()]
        for action in actions:
            action.get("commitInfo", {}).get("operationParameters", {})["location"] = location
        lines = [json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in actions]
        return "\n".join(lines).encode()

    def _publish(self, entry: bytes) -> None:
        with suppress(ConditionNotMatch, AlreadyExists):
            self.place.operator.write(self.place.full(FIRST_ENTRY), entry, if_not_exists=True)

    def _schema(self, schema: pa.Schema) -> Schema:
        try:
            return Schema.from_arrow(schema)
        except Exception as error:
            raise Unsupported(
                f"table {self.display}: Delta cannot keep these columns: {_reason(error)}",
                hint="Give a schema with another type for the column, text for instance.",
            ) from error

    def key(self, snapshot: Snapshot | None) -> TableKey:
        database, name = self._words
        table_id = snapshot.table_id if snapshot else ""
        return TableKey("delta", self.root, table_id, self.root, database, name)

    def encode(self, file: DataFile, target: TargetSchema) -> dict[str, Any]:
        return {
            "add": file.path,
            "size": file.size,
            "rows": file.rows,
            "partition": dict(file.partition),
            "stats": stats.delta_stats(file, target.schema),
        }


class DeltaSnapshot:
    """A Delta table at one version."""

    def __init__(
        self,
        table: DeltaTable,
        display: str,
        storage: dict[str, str] | None,
        place: TableRoot,
        log: LogMirror | None = None,
    ) -> None:
        self._table = table
        self._log = log
        self._display = display
        self._storage = storage
        self._place = place
        self._metadata = table.metadata()

    @property
    def table_id(self) -> str:
        return str(self._metadata.id)

    @property
    def version(self) -> int:
        return int(self._table.version())

    @cached_property
    def target(self) -> TargetSchema:
        return TargetSchema(
            schema=pa.schema(cast(Any, self._table.schema().to_arrow())),
            partition_columns=tuple(self._metadata.partition_columns),
        )

    @property
    def properties(self) -> Mapping[str, str]:
        return {name: value for name, value in self._metadata.configuration.items() if value}

    def refuse_unsupported(self) -> None:
        """Refuse tables whose rules a file written by us could break."""
        configuration = self._metadata.configuration
        broken = [name for name in configuration if name.startswith("delta.constraints.")]
        if configuration.get("delta.columnMapping.mode", "none") != "none":
            broken.append("delta.columnMapping.mode")
        for field in self._table.schema().fields:
            rules = ("delta.generationExpression", "delta.invariants", "delta.identity.start")
            broken += [f"{field.name}: {rule}" for rule in rules if rule in field.metadata]
        if broken:
            raise Unsupported(
                f"table {self._display} has rules that calque does not keep: {', '.join(broken)}",
                hint="Load into a plain table and move the rows with the engine that knows them.",
            )

    def count_rows(self) -> int | None:
        with map_errors(DELTA, self._display):
            return delta_rows.count_rows(self._table)

    def first_rows(self, count: int) -> pa.Table:
        with map_errors(DELTA, self._display):
            return delta_rows.first_rows(self._table, count, self._place, self._log)

    def marker(self, load_id: str, base_version: int) -> Marker | None:
        number = self._table.transaction_version(app_id(load_id))
        if number is None:
            return None
        return Marker(MARKS[number], self._version_of(load_id, base_version))

    def _version_of(self, load_id: str, base_version: int) -> int | None:
        """Where the marker was committed; None once the log no longer tells."""
        recent = self.version - base_version
        with map_errors(DELTA, self._display):
            for entry in self._table.history(recent if recent > 0 else None):
                if entry.get("calque.load") == load_id:
                    return int(entry["version"])
        return None

    def commits(self, since: int) -> list[Committed] | None:
        found = read_commits(self._place, since, self.version)
        if found is None:
            return None
        return [
            Committed(one.app_id.removeprefix(OURS), one.version)
            for one in found
            if one.app_id.startswith(OURS) and MARKS.get(one.number) is Mark.COMMITTED
        ]

    def markers(self) -> Sequence[str]:
        return ()

    def commit(self, change: Change) -> int:
        self._check_append_only(change)
        properties = CommitProperties(
            custom_metadata=_description(change),
            max_commit_retries=0,
            # Without a time: delta.setTransactionRetentionDuration hides those that have one, and a
            # load without its marker is committed again.
            app_transactions=[Transaction(app_id(change.load_id), NUMBERS[change.mark])],
        )
        with map_errors(DELTA, self._display), publish_writes(self._log):
            self._table.create_write_transaction(
                self._actions(change),
                "overwrite" if change.truncate else "append",
                self._table.schema(),
                partition_by=list(self._metadata.partition_columns) or None,
                commit_properties=properties,
            )
        return self.version + 1

    def _actions(self, change: Change) -> list[AddAction | RemoveAction]:
        now = int(time.time() * 1000)
        removed = [action["remove"] for action in change.actions if "remove" in action]
        known = self._find_files_to_remove(removed)
        actions: list[AddAction | RemoveAction] = []
        for action in change.actions:
            if "remove" in action:
                size, partition = known[action["remove"]]
                actions.append(RemoveAction(action["remove"], True, now, size, partition))
            else:
                actions.append(
                    AddAction(
                        action["add"],
                        action["size"],
                        action["partition"],
                        now,
                        True,
                        action["stats"],
                    )
                )
        return actions

    def _find_files_to_remove(
        self, paths: Sequence[str]
    ) -> dict[str, tuple[int, dict[str, str | None]]]:
        """Size and partition of data files to be removed; gone ones are a conflict of rows."""
        wanted = set(paths)
        found = self._find_files(wanted) if wanted else {}
        if len(found) < len(wanted):
            raise DataError(
                f"table {self._display}: rows to be replaced were moved by another tool",
                hint="Compaction rewrote their data files. Use on_changed=reload or skip.",
            )
        return found

    def _find_files(self, wanted: set[str]) -> dict[str, tuple[int, dict[str, str | None]]]:
        found = {}
        for row in pa.table(self._table.get_add_actions(flatten=False)).to_pylist():
            path = unquote(row["path"])  # the library encodes on its way into the log only
            if path in wanted:
                partition = row.get("partition") or row.get("partition_values") or {}
                found[path] = (row["size_bytes"], _texts(partition))
        return found

    def _check_append_only(self, change: Change) -> None:
        removes = change.truncate or any("remove" in action for action in change.actions)
        if removes and self._metadata.configuration.get("delta.appendOnly") == "true":
            raise Unsupported(f"table {self._display} is append-only: rows cannot be removed")

    def find_restores(self, since: int) -> list[tuple[int, int]]:
        if since < 0 or since >= self.version:
            return []
        with map_errors(DELTA, self._display):
            entries = self._table.history(self.version - since)
        ranges = []
        at = self.version
        for entry in sorted(entries, key=lambda one: int(one["version"]), reverse=True):
            number = int(entry["version"])
            # A restore that was itself taken back counts no more.
            if entry.get("operation") != "RESTORE" or not since < number <= at:
                continue
            at = self._find_restored_version(entry)
            ranges.append((at, number))
        return ranges

    def _find_restored_version(self, entry: Mapping[str, Any]) -> int:
        parameters = entry.get("operationParameters") or {}
        if parameters.get("version") is not None:
            return int(parameters["version"])
        moment = parameters.get("timestamp") or parameters.get("datetime")
        with map_errors(DELTA, self._display):
            table = DeltaTable(self._table.table_uri, storage_options=self._storage)
            table.load_as_version(str(moment))
        return int(table.version())

    def live(self, paths: Iterable[str]) -> dict[str, dict[str, str | None]]:
        wanted = set(paths)
        if not wanted:
            return {}
        if pa.table(self._table.deletion_vectors()).num_rows:
            raise Unsupported(
                f"table {self._display} has deletion vectors: rows cannot be replaced"
            )
        return {path: partition for path, (_, partition) in self._find_files(wanted).items()}

    def evolve(self, schema: pa.Schema) -> None:
        """Add the columns that are new; a changed type is refused: Delta's feature is not here."""
        have = self.target.schema
        for field in schema:
            index = have.get_field_index(field.name)
            if index >= 0 and have.field(index).type != field.type:
                was, wanted = map(type_names.text_of_type, (have.field(index).type, field.type))
                raise Unsupported(
                    f"table {self._display}: column {field.name!r} cannot be widened from "
                    f"{was} to {wanted} in a Delta table",
                    hint="Load without schema evolution and with a RESCUE_COLUMN, which takes what "
                    "does not fit; or rewrite the table with the wider type, then load.",
                )
        new = [field.with_nullable(True) for field in schema if field.name not in have.names]
        if not new:
            return
        fields: list[Field] = list(Schema.from_arrow(pa.schema(new)).fields)
        try:
            with publish_writes(self._log):
                self._table.alter.add_columns(
                    fields, commit_properties=CommitProperties(max_commit_retries=0)
                )
        except Exception as error:
            ours = map_error(error, DELTA, self._display)
            if isinstance(ours, ConditionNotMatch):
                raise ours from error
            raise DataError(f"table {self._display}: cannot add columns: {error}") from error


def _resolve_links(root: str) -> str:
    """One table has one root, whatever links lead to it."""
    if not root.startswith("file://"):
        return root
    return "file://" + os.path.realpath(root.removeprefix("file://"))


def _words_of(root: str) -> tuple[str, str]:
    """Database and table where the user gave a location alone: the folder and what is in it."""
    folder, _, name = root.rpartition("/")
    is_folder = "://" in folder and not folder.endswith("://")
    return (folder, name) if is_folder and name else ("default", root)


def _reason(error: Exception) -> str:
    """What the library says is wrong, without the frames it prints behind."""
    return str(error).partition("\n")[0].rpartition("Schema error: ")[2]


def _description(change: Change) -> dict[str, str]:
    described = {"calque.load": change.load_id, "calque.mark": str(change.mark)}
    if change.sidecar:
        described["calque.sources"] = change.sidecar
    return described


def _texts(values: Mapping[str, Any]) -> dict[str, str | None]:
    """Partition values as the log spells them."""
    return {name: None if value is None else _text(value) for name, value in values.items()}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
