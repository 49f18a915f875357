"""Rows that are there once for each key: written, or written over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import ClauseElement, Table
from sqlalchemy.dialects import postgresql, sqlite

from calque.store.metabase.engine.statement import Statement


def upsert_statement(name: str, table: Table) -> Statement:
    """Insert a row, or set every other column of the one with this primary key."""
    keys = [column.name for column in table.primary_key]

    def of(insert: Callable[[Table], Any]) -> ClauseElement:
        inserted = insert(table)
        changes = {
            column.name: inserted.excluded[column.name]
            for column in table.c
            if column.name not in keys
        }
        changed: ClauseElement = inserted.on_conflict_do_update(index_elements=keys, set_=changes)
        return changed

    return Statement(name, sqlite=of(sqlite.insert), postgres=of(postgresql.insert))
