"""AsyncCopier: the Copier, driven from an event loop by threads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

from calque.operator.checkpoint import Checkpoint
from calque.operator.copier import Copier, Route
from calque.operator.threads import Threads
from calque.values import Metadata, Progress

_END = -1


class AsyncCopier(AsyncIterator[int]):
    """The same steps, states and promises as :class:`Copier`, awaited.

    A task that is cancelled while it waits for a step leaves that step to its thread. Whatever
    comes next (another step, an abort, the end of ``async with``) first waits for it, so nothing
    runs on unseen and nothing is left behind.
    """

    def __init__(self, copier: Copier, threads: Threads) -> None:
        self._copier = copier
        self._threads = threads

    @property
    def route(self) -> Route:
        """Which way the bytes go."""
        return self._copier.route

    @property
    def progress(self) -> Progress:
        """Bytes copied and bytes in all."""
        return self._copier.progress

    @property
    def source(self) -> Metadata:
        """The source as it was when the copy began."""
        return self._copier.source

    @property
    def metadata(self) -> Metadata:
        """The target's metadata, once the copy is complete."""
        return self._copier.metadata

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> int:
        # StopIteration cannot pass through a future, so the end is a number here.
        copied = await self._threads.run(lambda: next(self._copier, _END))
        if copied == _END:
            raise StopAsyncIteration
        return copied

    async def run(self) -> Metadata:
        """Drain the copy and return the target's metadata; abort it on error or cancellation."""
        async with self:
            async for _ in self:
                pass
        return self.metadata

    async def abort(self) -> None:
        """As :meth:`Copier.abort`; runs to its end even when the task is cancelled meanwhile."""
        await self._threads.finish(self._copier.abort)

    async def pause(self) -> Checkpoint:
        """As :meth:`Copier.pause`; runs to its end even when the task is cancelled meanwhile."""
        return await self._threads.finish(self._copier.pause)

    async def checkpoint(self) -> Checkpoint:
        """As :meth:`Copier.checkpoint`, between two steps."""
        return await self._threads.run(self._copier.checkpoint)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._threads.finish(lambda: self._copier.__exit__(kind, error, trace))

    def __repr__(self) -> str:
        return f"<Async{repr(self._copier)[1:]}"
