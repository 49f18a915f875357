"""What a task of a scan is given: where the snapshot is, and which range of it to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

COLUMNS: Mapping[str, str] = MappingProxyType(
    {
        name: name
        for name in (
            "stream_id",
            "position",
            "created_at",
            "expires_at",
            "root_piece_id",
            "encrypted_size",
            "plain_size",
            "redundancy",
            "remote_alias_pieces",
            "placement",
        )
    }
    # The data itself is of no use to anybody here, and would be most of what is read.
    | {"is_inline": "inline_data IS NOT NULL"}
)
"""What a scan can read of a segment, and the SQL of it."""

BATCH = 2500
"""Rows that are handed over at once."""


@dataclass(frozen=True, slots=True)
class Range:
    """A part of the table: pages on PostgreSQL, keys on SQLite; None is open."""

    number: int
    low: Any
    high: Any


@dataclass(frozen=True, slots=True)
class SnapshotSource:
    """Where tasks find a snapshot. It holds no password: a task finds its own."""

    dialect: str
    place: str = field(repr=False)
    name: str


class Reader(Protocol):
    """A connection that sees the snapshot."""

    def read(self, range: Range, columns: Sequence[str]) -> Iterator[list[Any]]:
        """The rows of a range, some at a time, in the columns asked for."""

    def close(self) -> None: ...


def select_list(columns: Sequence[str]) -> str:
    """The columns in SQL."""
    return ", ".join(COLUMNS[name] for name in columns)
