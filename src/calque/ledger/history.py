"""What was done: loads of a table, the results and the errors of a load."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, select

from calque.errors import NotFound
from calque.ledger.database import Ledger
from calque.ledger.identity import moment
from calque.ledger.manifest import FileResult
from calque.ledger.schema import REBUILT, errors, files, loads, results, tables
from calque.ledger.tables import TableKey, find_table, find_words
from calque.values.row_errors import unpack


@dataclass(frozen=True, slots=True)
class LoadRow:
    """One load in the history of a table."""

    load_id: str
    database: str
    table: str
    state: str
    label: str | None
    files: int
    rows: int
    errors: int
    bytes: int
    started_at: datetime | None
    finished_at: datetime | None
    table_version: int | None
    who: str | None
    engine: str | None
    statement: str | None
    message: str | None
    last: bool
    table_number: int

    @property
    def seconds(self) -> float | None:
        """How long it took; None where that is not known: the table does not tell."""
        if self.started_at is None or self.finished_at is None or self.message == REBUILT:
            return None
        return (self.finished_at - self.started_at).total_seconds()


_LOAD = (
    loads.c.load_id,
    tables.c.database,
    tables.c.name.label("table_name"),
    loads.c.state,
    loads.c.label,
    loads.c.files,
    loads.c.rows,
    loads.c.errors,
    loads.c.bytes,
    loads.c.started_at,
    loads.c.finished_at,
    loads.c.table_version,
    loads.c.who,
    loads.c.engine,
    loads.c.statement,
    loads.c.message,
    loads.c.last,
    loads.c.table_number,
)


def history(ledger: Ledger, key: TableKey, *, limit: int = 100) -> list[LoadRow]:
    """The last loads of a table, newest first, those of an earlier table in its place too."""
    conditions = [
        tables.c.tenant == ledger.tenant,
        tables.c.catalog == key.catalog,
        tables.c.address == key.address,
    ]
    return select_loads(ledger, conditions, limit)


def find_load(ledger: Ledger, load_id: str) -> LoadRow:
    """One load, of whatever tenant: no two have an id; NotFound if the ledger has never seen it."""
    return _require_one(ledger, load_id, select_loads(ledger, [loads.c.load_id == load_id], 1))


def find_own_load(ledger: Ledger, load_id: str) -> LoadRow:
    """The same for whoever is shown it: of this tenant alone."""
    return _require_one(ledger, load_id, _select_own(ledger, loads.c.load_id == load_id))


def find_load_by_name(ledger: Ledger, name: str) -> LoadRow:
    """The tenant's load of this id, or its last that bore the label; NotFound if there is none."""
    found = _select_own(ledger, loads.c.load_id == name)
    return _require_one(ledger, name, found or _select_own(ledger, loads.c.label == name))


def _select_own(ledger: Ledger, condition: ColumnElement[bool]) -> list[LoadRow]:
    return select_loads(ledger, [tables.c.tenant == ledger.tenant, condition], 1)


def _require_one(ledger: Ledger, name: str, found: Sequence[LoadRow]) -> LoadRow:
    if not found:
        raise NotFound(
            f"there is no load {name!r} in the ledger at {ledger.where}",
            hint="See what there is with: calque history TABLE",
        )
    return found[0]


def loads_of_label(ledger: Ledger, number: int, label: str) -> list[LoadRow]:
    """The loads of a label in one table, newest first."""
    return select_loads(ledger, [loads.c.table_number == number, loads.c.label == label], 10_000)


def results_of(ledger: Ledger, load_id: str, *, after: str = "") -> Iterator[FileResult]:
    """The result rows of a load, in order of location, behind ``after``."""
    columns = [results.c[name] for name in FileResult.__dataclass_fields__]
    query = (
        select(*columns)
        .where(results.c.load_id == load_id, results.c.location > after)
        .order_by(results.c.location)
    )
    with ledger.read() as connection:
        for row in connection.execution_options(yield_per=5000).execute(query):
            yield FileResult(*row)


def errors_of(ledger: Ledger, load_id: str) -> Iterator[dict[str, Any]]:
    """Every kept error of a load, in the order of the file."""
    query = (
        select(errors.c.file, errors.c.packed)
        .where(errors.c.load_id == load_id)
        .order_by(errors.c.file)
    )
    with ledger.read() as connection:
        for file, packed in connection.execution_options(yield_per=100).execute(query):
            for error in unpack(file, packed):
                yield {"load_id": load_id, **error._asdict()}


def records_of(ledger: Ledger, key: TableKey, *, prefix: str = "") -> Iterator[dict[str, Any]]:
    """Every file record of a table, key and value whole, in order of location."""
    table = find_table(ledger, key)
    if table is None:
        return
    database, name = find_words(ledger, key)
    words = {"tenant": ledger.tenant, "database": database, "table": name}
    query = (
        select(
            *(column for column in files.columns if column.name not in {"table_number", "parts"})
        )
        .where(files.c.table_number == table.number, files.c.location >= prefix)
        .order_by(files.c.location)
    )
    with ledger.read() as connection:
        for row in connection.execution_options(yield_per=5000).execute(query):
            if not row.location.startswith(prefix):
                return
            told = {
                name: moment(value) if name in _MOMENTS else value
                for name, value in row._mapping.items()
            }
            yield words | told | {"metadata": json.loads(row.metadata or "{}")}


_MOMENTS = {"last_modified", "verified_at", "expires_at", "loaded_at"}


def select_loads(
    ledger: Ledger, conditions: Sequence[ColumnElement[bool]], limit: int
) -> list[LoadRow]:
    """Loads that meet the conditions, newest first."""
    query = (
        select(*_LOAD)
        .join(tables, tables.c.number == loads.c.table_number)
        .where(*conditions)
        .order_by(loads.c.started_at.desc(), loads.c.load_id.desc())
        .limit(limit)
    )
    with ledger.read() as connection:
        return [_to_row(row) for row in connection.execute(query)]


def _to_row(row: Sequence[Any]) -> LoadRow:
    values = list(row)
    values[9], values[10] = moment(values[9]), moment(values[10])
    return LoadRow(*values)
