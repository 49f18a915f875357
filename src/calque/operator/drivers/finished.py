"""A copy that was complete already when its checkpoint was taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calque.errors import CheckpointInvalid
from calque.values import Metadata

_DONE = "done"


def finished_state(driver: str, made: Metadata) -> dict[str, Any]:
    """The state of a driver that has made its target."""
    return {"driver": driver, _DONE: {"size": made.size, "pin": made.pin, "version": made.version}}


def is_finished(state: Mapping[str, Any]) -> bool:
    """Whether a checkpoint was taken after the commit."""
    return _DONE in state


class FinishedDriver:
    """Reports all bytes at once and ends: there is nothing left to do, and nothing to abort."""

    def __init__(self, state: Mapping[str, Any], found: Metadata) -> None:
        if finished_state("", found)[_DONE] != state[_DONE]:
            raise CheckpointInvalid(
                "the copy was complete, but its target was replaced since", hint="Copy anew."
            )
        self._state = dict(state)
        self._result = found
        self._told = False

    @property
    def total(self) -> int:
        return self._result.size

    def step(self) -> int | None:
        if self._told:
            return None
        self._told = True
        return self._result.size or None

    def abort(self) -> None:
        """Nothing: a complete copy stays."""

    def pause(self) -> None:
        """Nothing is under way."""

    def result(self) -> Metadata:
        return self._result

    def state(self) -> Mapping[str, Any]:
        return self._state
