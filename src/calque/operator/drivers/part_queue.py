"""The parts in flight of one copy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from calque import tracing
from calque.errors import Aborted
from calque.operator.drivers.verbs import Part
from calque.operator.interruptible import wait_for_first
from calque.values import ByteRange

T = TypeVar("T")


class PartQueue:
    """Copies parts on a bounded pool: never more than ``concurrent`` at a time, and exactly that
    many while enough remain.

    Every request runs on a thread of the pool. The caller's thread only waits, so an interrupt
    that reaches it cuts no request in half: what was begun is always known and can be undone. A
    part's request that fails is sent again by ``operator/layers/retry.py``, below this.
    """

    def __init__(
        self,
        todo: Iterable[tuple[int, ByteRange]],
        copy: Callable[[int, ByteRange], Part],
        *,
        concurrent: int,
        pool: ThreadPoolExecutor,
    ) -> None:
        self._todo = iter(todo)
        self._copy = copy
        self._concurrent = concurrent
        self._pool = pool
        self._flying: set[Future[Part]] = set()
        self._has_given_up = False

    def take(self) -> Part | None:
        """The next part that finishes; None when all have. Raises what a part has raised."""
        self._fill()
        if not self._flying:
            return None
        done, _ = wait_for_first(self._flying)
        # A failure goes first: the sooner it is told, the fewer parts are copied in vain.
        first = next((each for each in done if each.exception() is not None), None)
        finished = first or next(iter(done))
        # Taken out before its result is asked for: a failure is raised once, not at every call.
        self._flying.discard(finished)
        part = finished.result()
        self._fill()
        return part

    def _fill(self) -> None:
        while len(self._flying) < self._concurrent:
            following = next(self._todo, None)
            if following is None:
                return
            self._flying.add(self._pool.submit(self._copy_or_give_up, *following))

    def drain(self) -> list[Part]:
        """After the pool was shut down: parts that came through without having been taken."""
        return [
            each.result()
            for each in self._flying
            if each.done() and not each.cancelled() and each.exception() is None
        ]

    @property
    def has_given_up(self) -> bool:
        """Whether we hung up on a part, which may yet land."""
        return self._has_given_up

    def _copy_or_give_up(self, number: int, span: ByteRange) -> Part:
        try:
            return self._copy(number, span)
        except Aborted:
            self._has_given_up = True
            raise


def pool_for(concurrent: int, parts: int) -> ThreadPoolExecutor:
    """A pool with a thread for each part in flight; threads start as they are needed."""
    return ThreadPoolExecutor(
        max(1, min(concurrent, parts)),
        thread_name_prefix="calque-part",
        initializer=tracing.enter_here(),
    )
