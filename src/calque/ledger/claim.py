"""Claim: one transaction that opens a load and takes the files nobody else holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select

from calque.errors import AlreadyExists
from calque.ledger.database import Ledger
from calque.ledger.files import GET, KNOWN
from calque.ledger.identity import Known, Verdict, judge
from calque.ledger.schema import claims, files, loads
from calque.ledger.tables import TableRow, upsert
from calque.values import SourceIdentity

ENDED = "that has just ended"
"""Of a file that was another's when we asked for it, and nobody's when we looked whose."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file to be claimed, and the load that its record named when it was compared."""

    identity: SourceIdentity
    seen: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadStart:
    """What a load says of itself when it begins."""

    load_id: str
    owner: str
    lease_seconds: float
    base_version: int
    label: str | None = None
    who: str | None = None
    statement: str | None = None
    engine: str | None = None
    purge: bool = False
    force: bool = False


@dataclass(frozen=True, slots=True)
class Claimed:
    """What became of each wanted file: ours, held by another load, or loaded in the meantime."""

    granted: tuple[str, ...]
    held: dict[str, str]
    loaded: tuple[str, ...]


def claim(ledger: Ledger, table: TableRow, start: LoadStart, wanted: Sequence[Wanted]) -> Claimed:
    """Open the load in state WRITING and claim its files, all in one transaction.

    A file is granted only if no open load holds it and its record is still the one the caller
    compared with. Raises AlreadyExists when the load id was used before.
    """
    with ledger.write() as connection:
        _open(connection, ledger, table, start)
        _take(connection, table, start, wanted)
        granted, held = _sort(connection, table, start, wanted)
        ended = [one for one in wanted if held.get(one.identity.location) == ENDED]
        loaded = [] if start.force else _loaded(connection, ledger, table, [*granted, *ended])
        for location in loaded:
            held.pop(location, None)
            connection.execute(
                delete(claims).where(
                    claims.c.table_number == table.number,
                    claims.c.location == location,
                    claims.c.load_id == start.load_id,
                )
            )
    gone = set(loaded)
    return Claimed(
        tuple(one.identity.location for one in granted if one.identity.location not in gone),
        held,
        tuple(loaded),
    )


def _open(connection: Connection, ledger: Ledger, table: TableRow, start: LoadStart) -> None:
    if connection.execute(select(loads.c.load_id).where(loads.c.load_id == start.load_id)).first():
        raise AlreadyExists(
            f"load {start.load_id} is in the ledger already",
            hint="Another process runs, or ran just now, a statement with this label: run it again "
            "to see what that one did."
            if start.label
            else None,
        )
    now = ledger.now()
    connection.execute(
        insert(loads).values(
            load_id=start.load_id,
            table_number=table.number,
            label=start.label,
            last=False,
            state="WRITING",
            owner=start.owner,
            lease_until=ledger.lease_now(connection) + int(start.lease_seconds * 1e6),
            started_at=now,
            base_version=start.base_version,
            who=start.who,
            statement=start.statement,
            engine=start.engine,
            purge=start.purge,
        )
    )


def _take(
    connection: Connection, table: TableRow, start: LoadStart, wanted: Sequence[Wanted]
) -> None:
    if not wanted:
        return
    # In key order, so that two loaders that insert at once wait for each other and never deadlock.
    rows = [
        {
            "table_number": table.number,
            "location": one.identity.location,
            "load_id": start.load_id,
        }
        for one in sorted(wanted, key=lambda one: one.identity.location)
    ]
    connection.execute(upsert(connection, claims).on_conflict_do_nothing(), rows)


def _sort(
    connection: Connection, table: TableRow, start: LoadStart, wanted: Sequence[Wanted]
) -> tuple[list[Wanted], dict[str, str]]:
    holders: dict[str, str] = {}
    for chunk in _chunks(wanted):
        query = select(claims.c.location, claims.c.load_id).where(
            claims.c.table_number == table.number,
            claims.c.location.in_([one.identity.location for one in chunk]),
        )
        holders.update((row[0], row[1]) for row in connection.execute(query))
    granted, held = [], {}
    for one in wanted:
        holder = holders.get(one.identity.location, ENDED)
        if holder == start.load_id:
            granted.append(one)
        else:
            held[one.identity.location] = holder
    return granted, held


def _loaded(
    connection: Connection, ledger: Ledger, table: TableRow, granted: Sequence[Wanted]
) -> list[str]:
    """Files that another load finished between our look and our claim."""
    loaded = []
    now = ledger.now()
    for chunk in _chunks(granted):
        by_location = {one.identity.location: one for one in chunk}
        query = select(*KNOWN).where(
            files.c.table_number == table.number,
            files.c.location.in_(list(by_location)),
            files.c.expires_at > now,
        )
        for known in map(Known._make, connection.execute(query)):
            one = by_location[known.location]
            if known.load_id == one.seen:
                continue
            if judge(known, one.identity) is not Verdict.DIFFERENT:
                loaded.append(known.location)
    return loaded


def _chunks(wanted: Sequence[Wanted]) -> list[Sequence[Wanted]]:
    return [wanted[start : start + GET] for start in range(0, len(wanted), GET)]
