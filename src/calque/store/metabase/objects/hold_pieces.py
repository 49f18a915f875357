"""Keep pieces on their nodes for a while, whatever is deleted: a backup still has to copy them.

A hold is a row with an end, which its holder puts off again and again; a killed holder's runs out.
Whoever deletes pieces looks at it once a second at most. So a hold is only relied on once it is
older than that: pieces freed from then on stay in the queue.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import bindparam, delete
from sqlalchemy.dialects import postgresql, sqlite

from calque.errors import FailedPrecondition
from calque.store.metabase.accounts.projects import SETTING
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model.schema import settings
from calque.store.metabase.model.terms import is_held

HOLD = "pieces_held"
LEASE_US = 120 * 1_000_000
REFRESH_S = 20.0
BELIEVED_S = 1.0
"""How long an answer about holds is believed."""

_OWNER = 8

SET_HOLD = Statement(
    "set the hold on pieces",
    sqlite=sqlite.insert(settings).on_conflict_do_update(
        index_elements=["name"], set_={"value": sqlite.insert(settings).excluded.value}
    ),
    postgres=postgresql.insert(settings).on_conflict_do_update(
        index_elements=["name"], set_={"value": postgresql.insert(settings).excluded.value}
    ),
)
END_HOLD = Statement(
    "end the hold on pieces",
    delete(settings).where(
        settings.c.name == bindparam("of_name"), settings.c.value == bindparam("of_value")
    ),
)


class Hold:
    """A hold that this process has; :meth:`refresh` it now and then."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._owner = os.urandom(_OWNER)
        self._value = b""
        self._refreshed = 0.0

    def refresh(self) -> None:
        """Put its end off; FailedPrecondition when another has it or it ran out meanwhile."""
        if time.monotonic() - self._refreshed < REFRESH_S:
            return
        self._value = self._database.write(self._take)
        self._refreshed = time.monotonic()

    def end(self) -> None:
        """Let pieces be deleted again."""
        self._database.write(
            lambda transaction: transaction.run(
                END_HOLD, {"of_name": HOLD, "of_value": self._value}
            )
        )

    def _take(self, transaction: Transaction) -> bytes:
        found = transaction.row(SETTING, {"of_name": HOLD})
        until, owner = _parts(found[0]) if found else (0, b"")
        held = is_held(until, transaction.now, LEASE_US)
        if held and owner != self._owner:
            raise FailedPrecondition(
                "another backup of this store is under way",
                hint="Wait for it; one that was killed is forgotten after two minutes.",
            )
        if self._value and (owner != self._owner or not held):
            raise FailedPrecondition(
                "the backup was paused too long: pieces may be gone", hint="Begin it anew."
            )
        value = (transaction.now + LEASE_US).to_bytes(8, "big") + self._owner
        transaction.run(SET_HOLD, {"name": HOLD, "value": value})
        return value


@contextmanager
def hold_pieces(database: Database) -> Iterator[Hold]:
    """No piece that is freed from now on is deleted within the block, by any process."""
    hold = Hold(database)
    hold.refresh()
    try:
        time.sleep(2 * BELIEVED_S)
        yield hold
    finally:
        hold.end()


class HeldPieces:
    """Whether pieces are to be kept, as this process last heard. Safe to share between threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._asked = -BELIEVED_S
        self._held = False

    def __bool__(self) -> bool:
        with self._lock:
            now = time.monotonic()
            if now - self._asked >= BELIEVED_S:
                found = self._database.read_rows(SETTING, {"of_name": HOLD})
                until = _parts(found[0][0])[0] if found else 0
                self._held = is_held(until, self._database.clock(), LEASE_US)
                # From before the question: what was written since may not be in the answer.
                self._asked = now
            return self._held


def _parts(value: bytes) -> tuple[int, bytes]:
    data = bytes(value)
    return int.from_bytes(data[:8], "big"), data[8:]
