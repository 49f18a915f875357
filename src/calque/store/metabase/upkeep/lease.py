"""One process at a time does one service: a row with an end, put off while the work goes on.

Leases keep two processes from doing the same work. Nothing is lost where one runs out too early:
what a service changes it changes by compare-and-swap.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sqlalchemy import bindparam, delete, select

from calque.errors import CalqueError, FailedPrecondition
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model.schema import leases
from calque.store.metabase.model.terms import is_held
from calque.store.metabase.upkeep.upsert import upsert_statement

LEASE_US = 120 * 1_000_000
REFRESH_S = 20.0

LEASE_OF = Statement(
    "lease of a service",
    select(leases.c.holder, leases.c.until)
    .where(leases.c.service == bindparam("of_service"))
    .with_for_update(),
)
ALL_LEASES = Statement(
    "leases that are held",
    select(leases.c.service, leases.c.until),
    whole_table="a row for each service",
)
TAKE_LEASE = upsert_statement("take a lease", leases)
END_LEASE = Statement(
    "end a lease",
    delete(leases).where(
        leases.c.service == bindparam("of_service"), leases.c.holder == bindparam("of_holder")
    ),
)


def held_leases(database: Database) -> frozenset[str]:
    """What is being done now, by whichever process."""
    now = database.clock()
    return frozenset(
        service
        for service, until in database.read_rows(ALL_LEASES, {})
        if is_held(until, now, LEASE_US)
    )


class Lease:
    """The right to do a service, until it is lost."""

    def __init__(self, database: Database, service: str) -> None:
        self._database = database
        self.service = service
        self._holder = os.urandom(16)
        self._over = threading.Event()
        self._lost = False
        self._taken = -math.inf

    def require(self) -> None:
        """FailedPrecondition once another process may have taken over."""
        # Who was stopped and goes on is asked this before the lease could be put off.
        if self._lost or time.monotonic() - self._taken > LEASE_US / 1_000_000:
            raise FailedPrecondition(
                f"another process does {self.service} by now: this one was paused too long",
                hint="What was done stays done; the other one goes on.",
            )

    def take(self) -> None:
        """Take it, or put its end off."""
        asked = time.monotonic()
        self._database.write(self._take)
        self._taken = asked

    def _take(self, transaction: Transaction) -> None:
        found = transaction.row(LEASE_OF, {"of_service": self.service})
        holder, until = found or (self._holder, 0)
        if bytes(holder) != self._holder and is_held(until, transaction.now, LEASE_US):
            seconds = (until - transaction.now) // 1_000_000
            raise FailedPrecondition(
                f"{self.service} is under way in another process",
                hint=f"Wait for it; if it was killed, another may begin in {seconds} seconds.",
            )
        until = transaction.now + LEASE_US
        transaction.run(
            TAKE_LEASE, {"service": self.service, "holder": self._holder, "until": until}
        )

    def keep(self) -> None:
        """In a thread of its own: put the end off again and again."""
        while not self._over.wait(REFRESH_S):
            try:
                self.require()  # another may have had it since, and ended it
                self.take()
            except FailedPrecondition:
                self._lost = True
                return
            except CalqueError:
                continue  # the database may be back before the lease is over

    def end(self) -> None:
        self._over.set()
        where = {"of_service": self.service, "of_holder": self._holder}
        with suppress(CalqueError):  # it runs out by itself
            self._database.write(lambda transaction: transaction.run(END_LEASE, where))


@contextmanager
def hold_lease(database: Database, service: str) -> Iterator[Lease]:
    """The service is this process's for the length of a ``with`` block, or FailedPrecondition."""
    lease = Lease(database, service)
    lease.take()
    keeper = threading.Thread(target=lease.keep, name=f"lease-{service}", daemon=True)
    keeper.start()
    try:
        yield lease
    finally:
        lease.end()
        keeper.join(timeout=5)
