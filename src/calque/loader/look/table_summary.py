"""A table as it is now: its schema, version, number of rows, and some of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from calque.config import Settings
from calque.errors import CalqueError, Unsupported
from calque.loader.commit.tables import Snapshot, open_table
from calque.loader.look.rows import rows_of
from calque.loader.request.type_names import text_of_type


@dataclass(frozen=True, slots=True)
class TableSummary:
    """What a table tells of itself."""

    name: str
    kind: str
    location: str
    table_id: str
    version: int
    rows: int | None
    """None: not known without reading them all."""
    schema: pa.Schema
    partition_by: tuple[str, ...]
    first_rows: pa.Table | None
    notes: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "name": self.name,
            "format": self.kind,
            "location": self.location,
            "table_id": self.table_id,
            "version": self.version,
            "rows": self.rows,
            "partition_by": list(self.partition_by),
            "columns": [
                {"name": one.name, "type": text_of_type(one.type), "nullable": one.nullable}
                for one in self.schema
            ],
            "first_rows": None if self.first_rows is None else rows_of(self.first_rows),
            "notes": self.notes,
        }


def summarise_table(name: str, settings: Settings, rows: int = 10) -> TableSummary:
    """Look at a table; NotFound if it is not there.

    A table that calque does not load is shown too, with a note that says why. So is one whose rows
    its library cannot read.
    """
    lake = open_table(name, settings, must_exist=True)
    snapshot = lake.look()
    notes = []
    try:
        snapshot.refuse_unsupported()
    except Unsupported as error:
        notes.append(f"loads are refused: {error.message}")
    return TableSummary(
        name=lake.display,
        kind=lake.kind,
        location=lake.root,
        table_id=snapshot.table_id,
        version=snapshot.version,
        rows=snapshot.count_rows(),
        schema=snapshot.target.schema,
        partition_by=snapshot.target.partition_columns,
        first_rows=_first_rows(snapshot, rows, notes),
        notes=notes,
    )


def _first_rows(snapshot: Snapshot, rows: int, notes: list[str]) -> pa.Table | None:
    if rows < 1:
        return None
    try:
        return snapshot.first_rows(rows)
    except CalqueError as error:
        notes.append(f"its rows cannot be shown: {error.message}")
        return None
