"""The table's root, where data files go; their paths are relative to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from calque.operator import Operator


@dataclass(frozen=True, slots=True)
class TableRoot:
    """The operator that holds the table, and the path of the table in it."""

    operator: Operator
    base: str

    @classmethod
    def at(cls, location: str, options: Mapping[str, object]) -> TableRoot:
        """Open the root of a table by its location and the options of its service."""
        return cls(*Operator.locate(location.rstrip("/") + "/", **cast(Any, options)))

    def full(self, path: str) -> str:
        """The operator's path of a data file."""
        return self.base + path

    def delete(self, path: str) -> None:
        """Remove a data file."""
        self.operator.delete(self.full(path))

    def close(self) -> None:
        """Give back connections."""
        self.operator.close()
