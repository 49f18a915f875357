"""A copy that is one request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calque.errors import InvalidInput
from calque.operator.drivers.finished import finished_state
from calque.operator.drivers.verbs import OneShotVerbs
from calque.values import Metadata


class OneShotDriver:
    """One request that is atomic by itself: nothing to abort before it, nothing left after it."""

    def __init__(self, verbs: OneShotVerbs, total: int) -> None:
        self._verbs = verbs
        self._total = total
        self._result: Metadata | None = None

    @property
    def total(self) -> int:
        return self._total

    def step(self) -> int | None:
        if self._result is not None:
            return None
        self._result = self._verbs.copy_once()
        return self._total or None

    def abort(self) -> None:
        """Nothing: the request has either made the target or left no trace."""

    def pause(self) -> None:
        """Nothing is held."""

    def result(self) -> Metadata:
        if self._result is None:
            raise InvalidInput("the copy is not complete and has no metadata yet")
        return self._result

    def state(self) -> Mapping[str, Any]:
        if self._result is not None:
            return finished_state("one-shot", self._result)
        return {"driver": "one-shot"}
