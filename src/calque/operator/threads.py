"""Calls of synchronous code from an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import TypeVar

from calque.errors import Aborted

T = TypeVar("T")


class Threads:
    """A bounded pool of threads that an event loop awaits."""

    def __init__(self, most: int) -> None:
        self._pool = ThreadPoolExecutor(most, thread_name_prefix="calque-async")

    async def run(self, call: Callable[[], T]) -> T:
        """The answer of a call. A cancelled task stops waiting; the call runs to its end."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    async def finish(
        self, call: Callable[[], T], *, on_cancel: Callable[[], object] = lambda: None
    ) -> T:
        """The answer of a call that must come to its end: a cancellation is told only after it.

        ``on_cancel`` may hurry the call along.
        """
        future = asyncio.get_running_loop().run_in_executor(self._pool, call)
        cancelled: asyncio.CancelledError | None = None
        # Shielded, and again after each cancellation: a thread cannot be cancelled, and what it
        # does would go on unseen while the caller believes that it is over.
        while not future.done():
            try:
                await asyncio.shield(future)
            except asyncio.CancelledError as error:
                cancelled = error
                on_cancel()
            except Exception:
                break
        if cancelled is not None:
            if not future.cancelled():
                future.exception()  # seen, so that the loop does not report it as lost
            raise cancelled
        return future.result()

    async def pull(self, chunks: AsyncIterable[bytes], call: Callable[[Iterator[bytes]], T]) -> T:
        """The answer of a call that reads, on its thread, what the loop brings chunk by chunk.

        Where the task is cancelled or the chunks fail, so does the reading, inside the call.
        """
        source = _PulledChunks(chunks.__aiter__(), asyncio.get_running_loop())
        return await self.finish(lambda: call(source), on_cancel=source.stop)

    def close(self) -> None:
        """Wait for what runs and end the threads."""
        self._pool.shutdown(wait=True)


class _PulledChunks(Iterator[bytes]):
    """The chunks of an asynchronous source, pulled from a thread."""

    def __init__(self, source: AsyncIterator[bytes], loop: asyncio.AbstractEventLoop) -> None:
        self._source = source
        self._loop = loop
        self._lock = threading.Lock()
        self._stopped = False
        self._pending: Future[bytes | None] | None = None

    def __next__(self) -> bytes:
        with self._lock:
            # Under the lock: else a stop between the look and the submit would cancel nothing.
            if self._stopped:
                raise Aborted("the write was cancelled")
            pending = asyncio.run_coroutine_threadsafe(self._pull(), self._loop)
            self._pending = pending
        try:
            chunk = pending.result()
        except CancelledError as error:
            raise Aborted("the write was cancelled") from error
        if chunk is None:
            raise StopIteration
        return chunk

    async def _pull(self) -> bytes | None:
        try:
            return await self._source.__anext__()
        except StopAsyncIteration:
            return None

    def stop(self) -> None:
        """Let the thread's next or present wait for a chunk raise Aborted."""
        with self._lock:
            self._stopped = True
            if self._pending is not None:
                self._pending.cancel()
