"""Tables that files are loaded into: Delta and Iceberg under one small interface."""

from calque.loader.commit.tables.base import (
    Change,
    Committed,
    Draft,
    Lake,
    Mark,
    Marker,
    Snapshot,
)
from calque.loader.commit.tables.open import TableName, open_table

__all__ = [
    "Change",
    "Committed",
    "Draft",
    "Lake",
    "Mark",
    "Marker",
    "Snapshot",
    "TableName",
    "open_table",
]
