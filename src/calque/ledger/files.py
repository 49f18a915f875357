"""File records: scan them in key order, fetch some by name, keep them alive."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from sqlalchemy import Select, delete, select, update

from calque.ledger.database import Ledger, fetch_plain_rows
from calque.ledger.identity import Known, micros
from calque.ledger.schema import files
from calque.ledger.tables import TableRow
from calque.values import SourceIdentity

RECORDS_AT_ONCE = 5000
"""Records in memory at a time: enough that the trips cost nothing, few enough to be small."""
NAMES_AT_ONCE = 500
"""Names asked for in one statement; SQLite allows 32,766 values, PostgreSQL 65,535."""

KNOWN = (
    files.c.location,
    files.c.size,
    files.c.etag,
    files.c.last_modified,
    files.c.version,
    files.c.token,
    files.c.content_hash,
    files.c.verified_at,
    files.c.expires_at,
    files.c.load_id,
)
_make_known = partial(tuple.__new__, Known)
"""What ``Known._make`` does, without a call of Python for each record."""


def scan(ledger: Ledger, table: TableRow, prefix: str = "") -> Iterator[Known]:
    """Records under a location prefix in byte order, a page in memory at a time.

    No connection is held between pages: whole loads may run before the next one is asked for.
    """
    query = _records(table).order_by(files.c.location).limit(RECORDS_AT_ONCE)
    end = after_prefix(prefix)
    if end is not None:
        query = query.where(files.c.location < end)
    following = files.c.location >= prefix
    while True:
        with ledger.read() as connection:
            page = fetch_plain_rows(connection, query.where(following))
        yield from map(_make_known, page)
        if len(page) < RECORDS_AT_ONCE:
            return
        following = files.c.location > page[-1][0]


def mget(ledger: Ledger, table: TableRow, locations: Iterable[str]) -> dict[str, Known]:
    """The records of these locations."""
    found: dict[str, Known] = {}
    names = iter(locations)
    with ledger.read() as connection:
        while chunk := list(islice(names, NAMES_AT_ONCE)):
            query = _records(table).where(files.c.location.in_(chunk))
            for known in map(_make_known, fetch_plain_rows(connection, query)):
                found[known.location] = known
    return found


def renew(ledger: Ledger, table: TableRow, locations: Sequence[str]) -> None:
    """Give records a whole life again: their files are still staged.

    Records that another loader is writing at this moment are passed over: they get one from it.
    """
    with ledger.write() as connection:
        expires = ledger.lease_now(connection) + ledger.life
        for start in range(0, len(locations), NAMES_AT_ONCE):
            free = (
                select(files.c.location)
                .where(
                    files.c.table_number == table.number,
                    files.c.location.in_(locations[start : start + NAMES_AT_ONCE]),
                )
                .with_for_update(skip_locked=True)
            )
            connection.execute(
                update(files)
                .where(files.c.table_number == table.number, files.c.location.in_(free))
                .values(expires_at=expires)
            )


Seen = tuple[Known, SourceIdentity, Mapping[str, Any] | None]
"""A record, and what its file is now: its identity, and what else is known about it."""


def refresh(ledger: Ledger, table: TableRow, seen: Sequence[Seen], looked_at: int) -> None:
    """The same content with new metadata: take that over, load nothing.

    ``looked_at`` is before the first look at any of them: a write since then may have left the time
    stamp as it was. A record that another load replaced in the meantime is left as it is.
    """
    with ledger.write() as connection:
        expires = ledger.lease_now(connection) + ledger.life
        # In key order: two that refresh the same records at once wait, and never deadlock.
        for known, identity, about in sorted(seen, key=lambda one: one[0].location):
            connection.execute(
                update(files)
                .where(
                    files.c.table_number == table.number,
                    files.c.location == known.location,
                    files.c.load_id == known.load_id,
                )
                .values(
                    etag=identity.etag,
                    last_modified=micros(identity.last_modified),
                    version=identity.version,
                    token=identity.token,
                    metadata=json_of(about),
                    verified_at=looked_at,
                    expires_at=expires,
                )
            )


def forget(ledger: Ledger, table: TableRow, locations: Sequence[str] | None = None) -> int:
    """Drop records (all of the table's without ``locations``): those files load again."""
    with ledger.write() as connection:
        query = delete(files).where(files.c.table_number == table.number)
        if locations is None:
            return connection.execute(query).rowcount
        return sum(
            connection.execute(query.where(files.c.location == location)).rowcount
            for location in locations
        )


def parts_of(ledger: Ledger, table: TableRow, locations: Sequence[str]) -> dict[str, str | None]:
    """Where the rows of loaded files stand in the table, as JSON."""
    found: dict[str, str | None] = {}
    with ledger.read() as connection:
        for start in range(0, len(locations), NAMES_AT_ONCE):
            query = select(files.c.location, files.c.parts).where(
                files.c.table_number == table.number,
                files.c.location.in_(locations[start : start + NAMES_AT_ONCE]),
            )
            found.update((row[0], row[1]) for row in connection.execute(query))
    return found


def parts_of_load(ledger: Ledger, table: TableRow, load_id: str) -> dict[str, str | None]:
    """Where the rows of every file of one load stand in the table, as JSON."""
    query = select(files.c.location, files.c.parts).where(
        files.c.table_number == table.number, files.c.load_id == load_id
    )
    with ledger.read() as connection:
        return {row[0]: row[1] for row in connection.execute(query)}


def json_of(about: Mapping[str, Any] | None) -> str | None:
    """What else is known about a file, as its record keeps it."""
    return json.dumps(about, sort_keys=True) if about else None


def after_prefix(prefix: str) -> str | None:
    """The least string above every string with this prefix; None if there is none."""
    for index in range(len(prefix) - 1, -1, -1):
        following = ord(prefix[index]) + 1
        if 0xD800 <= following <= 0xDFFF:
            following = 0xE000  # surrogates are no characters; no database stores them
        if following <= 0x10FFFF:
            return prefix[:index] + chr(following)
    return None


def _records(table: TableRow) -> Select[tuple[object, ...]]:
    """A record counts as long as it is there, whatever the clocks of those who look may say."""
    return select(*KNOWN).where(files.c.table_number == table.number)
