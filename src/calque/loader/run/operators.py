"""The operators that a task reads its staged files with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from calque.operator import Operator
from calque.operator.registry import split


class Operators:
    """Operators by the root of their service, opened once for each with the stage's options."""

    def __init__(self, options: Mapping[str, object] | None = None) -> None:
        self._options = dict(options or {})
        self._open: dict[str, Operator] = {}

    def at(self, location: str) -> tuple[Operator, str]:
        """The operator that holds a location, and the path in it."""
        root, path = split(location)
        if root not in self._open:
            self._open[root] = Operator.from_uri(root, **cast(Any, self._options))
        return self._open[root], path

    def close(self) -> None:
        """Give back connections."""
        for operator in self._open.values():
            operator.close()
