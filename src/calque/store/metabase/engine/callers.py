"""Is whoever asked for this work still there? A change that nobody waits for is not made.

A client that gives a call up takes it for failed, and goes on: it deletes, uploads anew, tries
again. A call that waited in a line meanwhile, for a thread, a lock or the disk, must not take
effect after that. So a writing transaction asks when it begins and once more right before its
commit, whoever shares it; only what is committed in that very moment may still come after the
client has left, or what takes one trip to the database, which waits for no lock for long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from calque.errors import Aborted
from calque.store.callers import IsThere, current_caller
from calque.store.metabase.engine.transaction import Transaction

T = TypeVar("T")


def require_caller() -> None:
    """``Aborted`` when the caller is gone."""
    _require(current_caller())


def caller_check() -> Callable[[], None]:
    """:func:`require_caller` for the caller of here and now, to be asked in any thread."""
    is_there = current_caller()
    return lambda: _require(is_there)


def require_caller_around(work: Callable[[Transaction], T]) -> Callable[[Transaction], T]:
    """``work``, which fails when its caller is gone before it or after it.

    It may run in the thread of another writer, so the caller is looked up here and now.
    """
    is_there = current_caller()
    if is_there is None:
        return work

    def run(transaction: Transaction) -> T:
        _require(is_there)
        result = work(transaction)
        _require(is_there)
        return result

    return run


def _require(is_there: IsThere | None) -> None:
    if is_there is not None and not is_there():
        raise Aborted("the caller has given up, so nothing was done")
