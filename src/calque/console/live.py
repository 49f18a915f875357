"""Figures that change while one looks, by Server-Sent Events.

One task asks once a second, and only while somebody looks; every open page is told what it found.
A browser whose connection broke comes back by itself.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping

from starlette.concurrency import run_in_threadpool

from calque.errors import CalqueError

EVERY = 1.0
"""Seconds between two questions."""
RETRY_MS = 2000

_log = logging.getLogger(__name__)

Ask = Callable[[], Mapping[str, object]]


class Live:
    """The figures of all sections, asked for together. Lives in one event loop."""

    def __init__(self, asks: list[Ask]) -> None:
        self._asks = asks
        self._watchers = 0
        self._number = 0
        self._figures: Mapping[str, object] = {}
        self._changed = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    def close(self) -> None:
        """Let every stream end; they see it within a second."""
        self._is_closed = True

    async def events(self, may_go_on: Callable[[], bool]) -> AsyncIterator[str]:
        """What one page is sent: an event after each question, numbered as the questions are."""
        self._watchers += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._ask_on())
        seen = self._number
        try:
            yield f"retry: {RETRY_MS}\n\n"
            while not self._is_closed and may_go_on():
                seen, figures = await self._next(seen)
                yield f"id: {seen}\nevent: figures\ndata: {json.dumps(figures)}\n\n"
        finally:
            self._watchers -= 1

    async def _next(self, seen: int) -> tuple[int, Mapping[str, object]]:
        async with self._changed:
            await self._changed.wait_for(lambda: self._number != seen)
            return self._number, self._figures

    async def _ask_on(self) -> None:
        while self._watchers:
            figures = await run_in_threadpool(self._ask)
            async with self._changed:
                self._number += 1
                self._figures = figures
                self._changed.notify_all()
            await asyncio.sleep(EVERY)

    def _ask(self) -> dict[str, object]:
        figures: dict[str, object] = {}
        for ask in self._asks:
            try:
                figures |= ask()
            except CalqueError as error:  # a database that is away comes back
                _log.info("figures are missing: %s", type(error).__name__)
            except Exception:  # a mistake of ours in one section must not silence the others
                _log.exception("figures are missing")
        return figures
