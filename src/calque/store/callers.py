"""Who waits for what this thread does: a caller that may hang up, or nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

IsThere = Callable[[], bool]

_is_there: ContextVar[IsThere | None] = ContextVar("is_there", default=None)


@contextmanager
def act_for_caller(is_there: IsThere | None) -> Iterator[None]:
    """What this thread writes from here on is for a caller; ``None``: it is nobody's but ours."""
    before = _is_there.set(is_there)
    try:
        yield
    finally:
        _is_there.reset(before)


def current_caller() -> IsThere | None:
    """Tells whether the caller is still there; ``None`` when this is done for nobody."""
    return _is_there.get()
