"""GCS's way: one call after another, each with the token of the last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from calque.errors import (
    CheckpointInvalid,
    ConditionNotMatch,
    IntegrityError,
    InvalidInput,
    Unavailable,
)
from calque.operator.drivers.finished import finished_state
from calque.operator.drivers.verbs import RewriteVerbs, Rewritten
from calque.values import Backoff, Metadata

_IDLE_CALLS = 12
"""Calls in a row that may bring neither a byte nor a new token before the copy is given up."""
_FRESH_CALLS = 1000
"""Calls in a row that may bring new tokens and no byte: a living rewrite, within reason."""
_BACKOFF = Backoff(first=0.01, most=2.0)


class RewriteDriver:
    """A rewrite from its first call to its last. Abandoned, it leaves nothing behind."""

    def __init__(self, verbs: RewriteVerbs, total: int, *, idle_calls: int = _IDLE_CALLS) -> None:
        self._verbs = verbs
        self._total = total
        self._idle_calls = idle_calls
        self._token: str | None = None
        self._copied = 0
        self._idle = 0
        self._fresh = 0
        self._held_before = 0
        self._resumed = False
        self._result: Metadata | None = None

    @classmethod
    def resume(cls, verbs: RewriteVerbs, state: Mapping[str, Any], *, size: int) -> Self:
        """The driver of an earlier rewrite, from its token."""
        token, copied = state.get("token"), state.get("copied")
        if not isinstance(copied, int) or not 0 <= copied <= size:
            raise CheckpointInvalid("the checkpoint's count of bytes cannot be right")
        if token is not None and not (isinstance(token, str) and token.isascii()):
            raise CheckpointInvalid("the checkpoint's token cannot be one of the service's")
        driver = cls(verbs, size)
        driver._resumed = True
        if token is not None:
            driver._token, driver._copied, driver._held_before = token, copied, copied
        return driver

    @property
    def total(self) -> int:
        return self._total

    def step(self) -> int | None:
        if self._held_before:
            held, self._held_before = self._held_before, 0
            return held
        if self._result is not None:
            return None
        before, token = self._copied, self._token
        reply = self._call()
        self._note(reply)
        gained = self._copied - before
        if reply.metadata is not None:
            return gained or None
        self._bound_idling(gained, moved=self._token != token)
        return gained

    def _call(self) -> Rewritten:
        try:
            return self._verbs.rewrite(self._token)
        except ConditionNotMatch:
            # A resumed copy may have been committed by its first process after the checkpoint:
            # then the target that stands in the way is its own.
            made = self._verbs.find_committed() if self._resumed else None
            if made is None:
                raise
            return Rewritten(self._total, self._total, None, made)

    def _note(self, reply: Rewritten) -> None:
        if reply.total != self._total:
            raise IntegrityError(
                f"the rewrite counts {reply.total} bytes where the source has {self._total}"
            )
        if reply.metadata is None and reply.token is None:
            raise IntegrityError("the rewrite's reply is neither finished nor has it a token")
        self._result, self._token = reply.metadata, reply.token
        done = self._total if reply.metadata is not None else min(reply.copied, self._total)
        self._copied = max(self._copied, done)

    def _bound_idling(self, gained: int, *, moved: bool) -> None:
        """A new token is a sign of life although no byte is told; the old one again is none."""
        self._idle = 0 if gained or moved else self._idle + 1
        self._fresh = 0 if gained else self._fresh + 1
        if self._idle >= self._idle_calls or self._fresh >= _FRESH_CALLS:
            raise Unavailable(
                f"the rewrite has not moved in {self._fresh} calls, at {self._copied} bytes",
                hint="Resume it later from its checkpoint.",
            )
        if self._fresh:
            # The service takes its time for a call by itself: no more than a pause is needed.
            _BACKOFF.sleep(self._idle + 1)

    def abort(self) -> None:
        """Nothing: an abandoned token leaves nothing that could be seen."""

    def pause(self) -> None:
        """Nothing is in flight between calls."""

    def result(self) -> Metadata:
        if self._result is None:
            raise InvalidInput("the copy is not complete and has no metadata yet")
        return self._result

    def state(self) -> Mapping[str, Any]:
        if self._result is not None:
            return finished_state("rewrite", self._result)
        return {"driver": "rewrite", "token": self._token, "copied": self._copied}
