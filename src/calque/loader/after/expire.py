"""``calque ledger expire``: records, loads and sidecars whose time is over, and dead loads.

A load that died is brought to its end by the next load of its table. A table that was made again is
another table: what was open for the old one is let go here, for nothing of it can be committed any
more, since a commit looks at the table's own id. A table that is merely not there may come back (a
disk that is not mounted): of its loads those go that had not been prepared, and so are in no table.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from calque.config import Settings
from calque.errors import CalqueError, NotFound
from calque.ledger import Ledger, TableKey, TableRow
from calque.ledger.abort import abort as abort_in_ledger
from calque.ledger.expire import OldLoad
from calque.ledger.expire import expire as expire_in_ledger
from calque.ledger.lease import dead_loads, take_over, this_process
from calque.ledger.manifest import Manifest
from calque.ledger.tables import tables_with_open_loads
from calque.loader.commit.recovery import recover
from calque.loader.commit.sidecars import Sidecars
from calque.loader.commit.tables import Lake, open_table
from calque.loader.run.writing.table_root import TableRoot

LEASE = 60.0


@dataclass(slots=True)
class Swept:
    """What went, and what could not be looked at."""

    files: int = 0
    loads: int = 0
    sidecars: int = 0
    ended: list[str] = field(default_factory=list)
    """Dead loads that were brought to an end, and how."""
    troubles: list[str] = field(default_factory=list)


def expire(settings: Settings, ledger: Ledger) -> Swept:
    """End dead loads, then drop what is older than records live. Safe to run at any time."""
    swept = Swept()
    for table in tables_with_open_loads(ledger):
        if dead_loads(ledger, table):
            _end_dead(settings, ledger, table, swept)

    def release(load: OldLoad) -> bool:
        return _remove_sidecar(settings, load, swept)

    dropped = expire_in_ledger(ledger, release)
    swept.files, swept.loads = dropped.files, dropped.loads
    return swept


def _end_dead(settings: Settings, ledger: Ledger, table: TableRow, swept: Swept) -> None:
    owner = f"{this_process()}#{secrets.token_hex(4)}"
    try:
        lake = lake_of(table.key, settings)
        found = _current_id(lake)
        if found != table.key.table_id:
            _let_go(ledger, table, owner, swept, absent=found is None)
            return
        done = recover(ledger, lake, table, owner, LEASE)
        swept.ended += [f"{one.load_id}: {one.mark}" for one in done]
    except CalqueError as error:
        swept.troubles.append(f"dead loads of {table.key.address} stay open: {error.message}")


def _current_id(lake: Lake) -> str | None:
    """The id of the table that has the name now; None where there is none."""
    try:
        return lake.open().table_id
    except NotFound:
        return None


def _let_go(ledger: Ledger, table: TableRow, owner: str, swept: Swept, *, absent: bool) -> None:
    for load in dead_loads(ledger, table):
        if absent and load.state != "WRITING":
            swept.troubles.append(
                f"load {load.load_id} stays open: its table {table.key.address} is not there, and "
                "only the table can tell whether it was committed"
            )
        elif take_over(ledger, load, owner, LEASE) is not None:
            abort_in_ledger(ledger, load.load_id, "its table is gone", Manifest())
            swept.ended.append(f"{load.load_id}: its table is gone")


def _remove_sidecar(settings: Settings, load: OldLoad, swept: Swept) -> bool:
    if load.key.location is None or load.adopted:
        return True
    try:
        place = TableRoot.at(load.key.location, lake_of(load.key, settings).options)
        swept.sidecars += forget_load(Sidecars(place), load)
    except CalqueError as error:
        swept.troubles.append(f"the sidecar of load {load.load_id} stays: {error.message}")
        return False
    return True


def forget_load(sidecars: Sidecars, load: OldLoad) -> bool:
    """Remove what a load left beside its table; whether it had listed anything.

    Other ledgers may never have seen it, or remember for longer: the table says first up to when
    files may have been loaded of which nobody knows any more. A table that is gone says nothing.
    """
    if load.forgotten_until is not None and sidecars.has_listed(load.load_id):
        sidecars.note_forgotten(load.key.table_id, load.tenant, load.forgotten_until)
    return sidecars.forget(load.load_id)


def lake_of(key: TableKey, settings: Settings) -> Lake:
    """The table that the ledger names so; as the configuration describes it, if it does."""
    kind, _, place = key.catalog.partition(":")
    for name, table in settings.tables.items():
        if table.format != kind:
            continue
        if kind == "delta" and open_table(name, settings).root == key.address:
            return open_table(name, settings)
        identifier = table.identifier or name
        if "." not in identifier:
            identifier = f"default.{identifier}"
        if table.catalog == place and identifier == key.address:
            return open_table(name, settings)
    if kind == "delta":
        return open_table(key.address, settings)
    if not place.startswith("/"):
        raise NotFound(
            f"no table of the configuration is {key.address} of catalog {place}",
            hint=f'Describe it under [tables] with catalog = "{place}".',
        )
    return open_table(f"iceberg:{place}/{key.address}", settings)
