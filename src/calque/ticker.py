"""A look at something now and then, while other work goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def call_every(look: Callable[[], None], every: float) -> Iterator[None]:
    """Look every so many seconds, from a thread of its own: the caller's is at work."""
    over = threading.Event()

    def tick() -> None:
        while not over.wait(every):
            look()

    teller = threading.Thread(target=tick, name="calque-ticker", daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()
