"""Leases: who runs a load, whether it still lives, and how another takes over.

A lease is for liveness alone. Whoever believes that it holds one may be wrong; the commit to the
table decides (see ``calque.loader.commit.protocol``). ``claim`` takes a lease with the files of a
load; services that look after a store have theirs in ``store/metabase/upkeep/lease.py``.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import select, update

from calque.ledger.database import Ledger
from calque.ledger.schema import OPEN, loads
from calque.ledger.tables import TableRow


@dataclass(frozen=True, slots=True)
class OpenLoad:
    """A load that is not over, as the ledger has it."""

    load_id: str
    state: str
    owner: str
    lease_until: int
    base_version: int
    table_number: int


def renew_lease(ledger: Ledger, load_id: str, owner: str, seconds: float) -> bool:
    """Hold the load for longer; False when it is over or somebody else's."""
    with ledger.write() as connection:
        until = ledger.lease_now(connection) + int(seconds * 1e6)
        renewed = connection.execute(
            update(loads)
            .where(loads.c.load_id == load_id, loads.c.owner == owner, loads.c.state.in_(OPEN))
            .values(lease_until=until)
        )
    return renewed.rowcount == 1


def dead_loads(ledger: Ledger, table: TableRow) -> list[OpenLoad]:
    """Open loads of a table whose lease ran out, or whose process on this machine is gone."""
    with ledger.read() as connection:
        now = ledger.lease_now(connection)
    return [
        load
        for load in open_loads(ledger, table)
        if load.lease_until <= now or process_is_gone(load.owner)
    ]


def open_loads(ledger: Ledger, table: TableRow) -> list[OpenLoad]:
    with ledger.read() as connection:
        rows = connection.execute(
            select(
                loads.c.load_id,
                loads.c.state,
                loads.c.owner,
                loads.c.lease_until,
                loads.c.base_version,
                loads.c.table_number,
            )
            .where(loads.c.table_number == table.number, loads.c.state.in_(OPEN))
            .order_by(loads.c.started_at, loads.c.load_id)
        )
        return [OpenLoad(*row) for row in rows]


def take_over(ledger: Ledger, load: OpenLoad, owner: str, seconds: float) -> OpenLoad | None:
    """Make a dead load ours; None when it moved since we looked (another was quicker)."""
    with ledger.write() as connection:
        until = ledger.lease_now(connection) + int(seconds * 1e6)
        taken = connection.execute(
            update(loads)
            .where(
                loads.c.load_id == load.load_id,
                loads.c.owner == load.owner,
                loads.c.lease_until == load.lease_until,
                loads.c.state == load.state,
            )
            .values(owner=owner, lease_until=until)
        )
    if taken.rowcount != 1:
        return None
    return OpenLoad(load.load_id, load.state, owner, until, load.base_version, load.table_number)


def this_process() -> str:
    """A name for this process that no other has had: host, namespace, boot, pid, start time."""
    return f"{_this_machine()}/{os.getpid()}/{_start_of(os.getpid())}"


def process_is_gone(owner: str) -> bool:
    """The owner ran on this very machine and is no more. When in doubt: False.

    A pid is given again to others; its start time tells whether it is still the same process.
    """
    machine, _, rest = owner.rpartition("/")[0].rpartition("/")
    started = owner.rpartition("/")[2].partition("#")[0]
    if machine != _this_machine() or not rest.isdigit() or not started.isdigit():
        return False
    return _start_of(int(rest)) != started


def is_of_this_host(owner: str) -> bool:
    """Whether the owner ran under the host name of this machine, before a restart of it too."""
    return owner.partition("/")[0].partition(":")[0] == socket.gethostname()


def _this_machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        return socket.gethostname()
    return f"{socket.gethostname()}:{boot}:{namespace}"


def _start_of(pid: int) -> str:
    """The process's start in clock ticks since boot; empty where it is gone (or a zombie)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]
