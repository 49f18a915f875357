"""Threads for pieces on their way, so shared that no key can take them all.

A client may be slow for hours, and each of its pieces has a thread meanwhile. So a key has at most
three quarters of what the key has that it was made from, and a first key of all there are. What a
key has counts for every key above it too: whoever holds one can make as many from it as he likes.
Calls beyond that wait in a lane of their key, and the lanes take turns.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from typing import Any

from calque.errors import PermissionDenied, RateLimited
from calque.store.metainfo.api_key import ApiKey

MOST_WAITING = 1000
"""Calls that may wait for the keys made from one; more are refused."""

Chain = tuple[bytes, ...]
"""A key and all that it was made from, the first of them first; each by a digest."""


class StreamThreads:
    """At most ``count`` threads. Safe to share between threads."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="pieces")
        self._lock = threading.Lock()
        self._running: Counter[bytes] = Counter()
        self._waiting: Counter[bytes] = Counter()
        self._lanes: dict[Chain, deque[Callable[[], None]]] = {}
        self._free = count

    def lane(self, api_key: bytes) -> Lane:
        """Where the calls of a key are begun; RateLimited when too many of them wait."""
        chain = chain_of(api_key)
        with self._lock:
            if self._waiting[chain[0]] >= MOST_WAITING:
                raise RateLimited(
                    f"{MOST_WAITING} pieces of this API key wait for others to end already",
                    hint="Send fewer pieces at once.",
                )
        return Lane(partial(self._enter, chain))

    def share(self, depth: int) -> int:
        """How many threads a key may have that was made in ``depth`` steps from a first one."""
        return max(int(self._count * 0.75 ** (depth + 1)), self._count // 4, 1)

    def _enter(self, chain: Chain, work: Callable[[], None]) -> None:
        with self._lock:
            self._lanes.setdefault(chain, deque()).append(work)
            self._waiting[chain[0]] += 1
            self._begin()

    def _begin(self) -> None:
        while self._free and (chain := self._next_chain()) is not None:
            lane = self._lanes.pop(chain)
            work = lane.popleft()
            if lane:
                self._lanes[chain] = lane  # behind the others: they take turns
            self._subtract(self._waiting, chain[:1])
            self._running.update(chain)
            self._free -= 1
            self._pool.submit(self._run, chain, work)

    def _next_chain(self) -> Chain | None:
        return next((chain for chain in self._lanes if self._has_room(chain)), None)

    def _has_room(self, chain: Chain) -> bool:
        return all(self._running[key] < self.share(depth) for depth, key in enumerate(chain))

    def _run(self, chain: Chain, work: Callable[[], None]) -> None:
        try:
            work()
        finally:
            with self._lock:
                self._free += 1
                self._subtract(self._running, chain)
                self._begin()

    @staticmethod
    def _subtract(counts: Counter[bytes], chain: Chain) -> None:
        counts.subtract(chain)
        for key in chain:
            if not counts[key]:
                del counts[key]


class Lane(ThreadPoolExecutor):
    """What gRPC begins a call in: it takes nothing but an executor of this class."""

    def __init__(self, enter: Callable[[Callable[[], None]], None]) -> None:
        super().__init__(1)  # without a thread, since nothing is ever submitted to it
        self._enter = enter

    def submit(self, call: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        """Have it run when it is this key's turn."""
        future: Future[Any] = Future()

        def work() -> None:
            try:
                future.set_result(call(*args, **named))
            except BaseException as error:
                future.set_exception(error)

        self._enter(work)
        return future


def chain_of(api_key: bytes) -> Chain:
    """The chain of a key, which nobody has checked yet: what cannot be read shares one."""
    try:
        key = ApiKey.parse(api_key)
    except PermissionDenied:
        return (b"",)
    digest = sha256()
    chain = []
    for part in (key.head, *key.caveats):
        digest.update(sha256(part).digest())
        chain.append(digest.digest())
    return tuple(chain)
