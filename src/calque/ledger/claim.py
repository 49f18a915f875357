"""Claim: one transaction that opens a load and takes the files nobody else holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, insert, select

from calque.errors import AlreadyExists
from calque.ledger.database import Ledger
from calque.ledger.files import KNOWN, NAMES_AT_ONCE
from calque.ledger.identity import Known, Verdict, judge
from calque.ledger.schema import claims, files, loads, tables
from calque.ledger.tables import TableRow, lock_table, upsert
from calque.values import SourceIdentity

ENDED = "that has just ended"
"""In place of a holder's name: the insert met another load's claim, which was gone when we asked
whose it was. That load may have recorded the file, so such files are looked up too."""


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
    label_uses: int = 0
    """How many loads of the table had the label when the statement began, and since by itself."""
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
    compared with. Raises AlreadyExists when another has used the label, or the load id, meanwhile.
    """
    with ledger.write() as connection:
        # The order matters: only once the claims are ours can no other load record these files, so
        # whether one has is asked last.
        _open_load(connection, ledger, table, start)
        _insert_claims(connection, table, start, wanted)
        granted, held = _find_holders(connection, table, start, wanted)
        ended = [one for one in wanted if held.get(one.identity.location) == ENDED]
        loaded = [] if start.force else _find_loaded(connection, table, [*granted, *ended])
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


def outlast_claims(ledger: Ledger, table: TableRow) -> None:
    """Return once every claim of the table that was being made is there, or never will be.

    For who was stopped in a claim: its COMMIT may be on the way to PostgreSQL, where nobody waits
    for the answer any more. Until it is carried out it holds the key of the table, as each claim
    that refers to it does; so it is waited for here. On SQLite a transaction ends with its caller.
    """
    with ledger.write() as connection:
        connection.execute(
            select(tables.c.number).where(tables.c.number == table.number).with_for_update()
        )


def _open_load(connection: Connection, ledger: Ledger, table: TableRow, start: LoadStart) -> None:
    if connection.execute(select(loads.c.load_id).where(loads.c.load_id == start.load_id)).first():
        raise AlreadyExists(f"load {start.load_id} is in the ledger already")
    if start.label is not None:
        _refuse_used_label(connection, table, start)
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


def _refuse_used_label(connection: Connection, table: TableRow, start: LoadStart) -> None:
    """Of two that run a labelled statement at once one loads, even if the other comes too late."""
    lock_table(connection, table)
    query = select(func.count()).where(
        loads.c.table_number == table.number, loads.c.label == start.label
    )
    if connection.execute(query).scalar_one() != start.label_uses:
        raise AlreadyExists(
            f"the label {start.label!r} was used meanwhile for another load of the table",
            hint="Another process runs, or ran just now, a statement with this label: run it again "
            "to see what that one did.",
        )


def _insert_claims(
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


def _find_holders(
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


def _find_loaded(connection: Connection, table: TableRow, granted: Sequence[Wanted]) -> list[str]:
    """Files that another load finished between our look and our claim."""
    loaded = []
    for chunk in _chunks(granted):
        by_location = {one.identity.location: one for one in chunk}
        query = select(*KNOWN).where(
            files.c.table_number == table.number,
            files.c.location.in_(list(by_location)),
        )
        for known in map(Known._make, connection.execute(query)):
            one = by_location[known.location]
            if known.load_id == one.seen:
                continue
            if judge(known, one.identity) is not Verdict.DIFFERENT:
                loaded.append(known.location)
    return loaded


def _chunks(wanted: Sequence[Wanted]) -> list[Sequence[Wanted]]:
    return [wanted[start : start + NAMES_AT_ONCE] for start in range(0, len(wanted), NAMES_AT_ONCE)]
