"""A copy inside the store, driven by the Operator: one transaction at the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calque.errors import CheckpointInvalid, InvalidInput
from calque.operator.layers.chain import Call, Chain
from calque.store.service.errors import map_errors
from calque.store.service.metadata import to_metadata
from calque.store.uplink.verbs.copy_object import Copy
from calque.values import Metadata


class StoreCopyDriver:
    """Sends the re-wrapped keys page by page; most objects need one page.

    What a step reports is the share of the bytes whose keys were sent, so that steps add up to
    the size of the object although not a byte of it is moved.
    """

    def __init__(
        self, copy: Copy, source: Metadata, target: str, location: str, chain: Chain
    ) -> None:
        self._copy = copy
        self._source = source
        self._target = target
        self._location = location
        self._chain = chain
        self._reported = 0
        self._result: Metadata | None = None

    @property
    def total(self) -> int:
        return self._source.size

    def step(self) -> int | None:
        if self._result is not None:
            return None
        if self._copy.operation is None and not self._copy.is_finished:
            # A step of its own: a checkpoint then names the operation before anything is committed.
            self._chain.run(Call("copy_begin", self._target), lambda _: self._copy.begin())
            return 0
        with map_errors(self._location):
            self._chain.run(Call("copy", self._target), lambda _: self._copy.step())
        if self._copy.is_finished:
            self._result = to_metadata(self._copy.result(), self._target)
            return self._report(self.total) or None
        return self._report(int(self.total * self._copy.fraction))

    def abort(self) -> None:
        """Nothing is visible before the commit; what was sent is swept by the satellite."""

    def pause(self) -> None:
        """Nothing is in flight between two steps."""

    def result(self) -> Metadata:
        if self._result is None:
            raise InvalidInput("the copy is not complete and has no metadata yet")
        return self._result

    def state(self) -> Mapping[str, Any]:
        operation = self._copy.operation
        return {"driver": "store", "operation": operation.hex() if operation else None}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on with the operation of a checkpoint; one that never began starts anew."""
        if state.get("driver") != "store":
            raise CheckpointInvalid("the checkpoint is not of a copy in the store")
        operation = state.get("operation")
        if operation is not None:
            self._copy.resume(bytes.fromhex(operation))

    def _report(self, reached: int) -> int:
        step, self._reported = reached - self._reported, reached
        return step
