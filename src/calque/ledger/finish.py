"""The end of a load: prepared, then committed or aborted, each in one transaction."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Executable, delete, insert, select, update

from calque.errors import Aborted, Unexpected
from calque.ledger.database import Ledger
from calque.ledger.files import GET, json_of
from calque.ledger.identity import micros
from calque.ledger.schema import OPEN, claims, errors, files, loads, purges, results, tables
from calque.ledger.tables import TableRow, lock_table, upsert
from calque.values import SourceIdentity

TOGETHER = 5000
ADOPTED = "rebuild"
"""The owner of a load that was taken in from the table: it was run with another ledger."""


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """A source whose rows are in the load: what its record and the table's sidecar hold."""

    identity: SourceIdentity
    rows: int
    errors: int
    content_hash: str | None
    verified_at: int
    parts: tuple[tuple[str, int, int], ...] = ()
    """(data file, first row, rows)."""
    about: Mapping[str, Any] | None = None
    """What the listing or a look told besides the identity: content type, user metadata …"""

    def to_json(self) -> dict[str, Any]:
        return {
            "identity": self.identity.to_json(),
            "rows": self.rows,
            "errors": self.errors,
            "content_hash": self.content_hash,
            "verified_at": self.verified_at,
            "parts": [list(part) for part in self.parts],
            **({"about": dict(self.about)} if self.about else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LoadedFile:
        return cls(
            SourceIdentity.from_json(data["identity"]),
            data["rows"],
            data["errors"],
            data["content_hash"],
            data["verified_at"],
            tuple((path, first, rows) for path, first, rows in data["parts"]),
            data.get("about"),
        )


@dataclass(frozen=True, slots=True)
class FileResult:
    """The result row of one file in one load."""

    location: str
    name: str
    status: str
    rows_parsed: int = 0
    rows_loaded: int = 0
    errors: int = 0
    first_error: str | None = None
    bytes: int = 0
    seconds: float = 0.0
    message: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Its fields by name: ``asdict`` without its copies, since there may be millions."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """All that is needed to commit and to finalise a load, by anyone."""

    actions: tuple[Mapping[str, Any], ...] = ()
    """What is committed to the table, in the words of its adapter."""
    sources: tuple[LoadedFile, ...] = ()
    results: tuple[FileResult, ...] = ()
    errors: Mapping[str, bytes] = field(default_factory=dict)
    """The rejected rows of each file, packed. They go to a table of their own when the load is
    prepared, and are not part of what is stored to commit it."""
    moved: Mapping[str, tuple[tuple[str, int, int], ...]] = field(default_factory=dict)
    """Rows of other sources that stand elsewhere now, since their data file was rewritten."""
    purge: bool = False
    archive: str | None = None
    """Where sources are moved; with it ``purge`` is a move."""
    truncate: bool = False
    last: bool = True
    label: str | None = None
    forced: bool = False
    """Rows of a file that another ledger's load brought meanwhile are no reason to give it up."""

    def encode(self) -> bytes:
        return zlib.compress(
            json.dumps(
                {
                    "actions": [dict(action) for action in self.actions],
                    "sources": [source.to_json() for source in self.sources],
                    "results": [result.to_json() for result in self.results],
                    "moved": {place: list(parts) for place, parts in self.moved.items()},
                    "purge": self.purge,
                    "archive": self.archive,
                    "truncate": self.truncate,
                    "last": self.last,
                    "label": self.label,
                    "forced": self.forced,
                },
                separators=(",", ":"),
            ).encode(),
            1,
        )

    @classmethod
    def decode(cls, data: bytes) -> Manifest:
        plain = json.loads(zlib.decompress(data))
        return cls(
            actions=tuple(plain["actions"]),
            sources=tuple(LoadedFile.from_json(source) for source in plain["sources"]),
            results=tuple(FileResult(**result) for result in plain["results"]),
            moved={
                place: tuple((path, first, rows) for path, first, rows in parts)
                for place, parts in plain["moved"].items()
            },
            purge=plain["purge"],
            archive=plain.get("archive"),  # absent in what an older calque prepared
            truncate=plain["truncate"],
            last=plain["last"],
            label=plain["label"],
            forced=plain.get("forced", False),
        )


def prepare(ledger: Ledger, load_id: str, owner: str, manifest: Manifest) -> None:
    """WRITING → PREPARED with the manifest. Raises Aborted when the load was taken from us."""
    with ledger.write() as connection:
        prepared = connection.execute(
            update(loads)
            .where(loads.c.load_id == load_id, loads.c.owner == owner, loads.c.state == "WRITING")
            .values(state="PREPARED", manifest=manifest.encode())
        )
        if prepared.rowcount == 1:
            _keep_errors(connection, load_id, manifest)
    if prepared.rowcount != 1:
        raise Aborted(
            f"load {load_id} was taken over by another loader while it was writing",
            hint="Nothing was loaded by this run; run the statement again.",
            retryable=True,
        )


def manifest_of(ledger: Ledger, load_id: str) -> Manifest | None:
    """The stored manifest of a load that was prepared."""
    with ledger.read() as connection:
        return _stored(connection, load_id)


def _stored(connection: Connection, load_id: str) -> Manifest | None:
    data = connection.execute(select(loads.c.manifest).where(loads.c.load_id == load_id)).scalar()
    return Manifest.decode(data) if data else None


def finalise(
    ledger: Ledger, load_id: str, table_version: int, manifest: Manifest | None = None
) -> bool:
    """PENDING → LOADED, load COMMITTED, in one transaction; False if somebody did it already.

    Works from the stored manifest, so that the owner and a recoverer do the very same; a caller
    that holds it may give it, and it is not read again.
    """
    with ledger.write() as connection:
        row = connection.execute(
            select(loads.c.table_number, loads.c.state)
            .where(loads.c.load_id == load_id)
            .with_for_update()
        ).first()
        if row is None or row.state == "COMMITTED":
            return False
        manifest = manifest or _stored(connection, load_id)
        if manifest is None or row.state != "PREPARED":
            raise Unexpected(
                f"load {load_id} is {row.state} in the ledger but committed in the table"
            )
        _record(connection, ledger, row.table_number, load_id, table_version, manifest)
        _close(connection, ledger, load_id, "COMMITTED", manifest, table_version)
    return True


def abort(ledger: Ledger, load_id: str, message: str, manifest: Manifest) -> bool:
    """Load ABORTED, its claims released, its results and errors kept; False if it was over."""
    with ledger.write() as connection:
        state = connection.execute(
            select(loads.c.state).where(loads.c.load_id == load_id).with_for_update()
        ).scalar()
        if state not in OPEN:
            return False
        _close(connection, ledger, load_id, "ABORTED", manifest, None, message)
        _keep_errors(connection, load_id, manifest)
    return True


def adopt(
    ledger: Ledger, table: TableRow, load_id: str, table_version: int, manifest: Manifest
) -> bool:
    """Take a committed load that the ledger lost back in, as its sidecar tells it.

    An id that is taken by a load of another table (two ledgers may have given the same label) gets
    this table's number behind it. False if the load is known; of a table that was restored it may
    have lost its records, which it gets again.
    """
    with ledger.write() as connection:
        lock_table(connection, table)
        for name in (load_id, f"{load_id}~t{table.number}"):
            if _reopen(connection, ledger, table, name, table_version, manifest):
                _record(connection, ledger, table.number, name, table_version, manifest)
                rebuilt = "rebuilt from the table"
                _close(connection, ledger, name, "COMMITTED", manifest, table_version, rebuilt)
                return True
            query = select(loads.c.table_number, loads.c.state).where(loads.c.load_id == name)
            holder = connection.execute(query).first()
            if holder is not None and holder.table_number == table.number:
                if table.was_restored and holder.state == "COMMITTED":
                    _revive(connection, ledger, table, name, table_version, manifest)
                return False
    return False


def loads_of_ledger(ledger: Ledger, load_ids: Sequence[str]) -> dict[str, tuple[int, str]]:
    """Table number and owner of those of these loads that the ledger knows."""
    found: dict[str, tuple[int, str]] = {}
    with ledger.read() as connection:
        for start in range(0, len(load_ids), GET):
            query = select(loads.c.load_id, loads.c.table_number, loads.c.owner).where(
                loads.c.load_id.in_(load_ids[start : start + GET])
            )
            found.update((row[0], (row[1], row[2])) for row in connection.execute(query))
    return found


def _revive(
    connection: Connection,
    ledger: Ledger,
    table: TableRow,
    load_id: str,
    table_version: int,
    manifest: Manifest,
) -> None:
    """Record a known load's sources again where no record as new is there; or its truncation."""
    places = [one.identity.location for one in manifest.sources]
    held: set[str] = set()
    for start in range(0, len(places), GET):
        query = select(files.c.location).where(
            files.c.table_number == table.number,
            files.c.location.in_(places[start : start + GET]),
            files.c.table_version >= table_version,
        )
        held.update(connection.execute(query).scalars())
    missing = tuple(one for one in manifest.sources if one.identity.location not in held)
    found = replace(manifest, sources=missing, moved={}, purge=False)
    _record(connection, ledger, table.number, load_id, table_version, found)


def _reopen(
    connection: Connection,
    ledger: Ledger,
    table: TableRow,
    load_id: str,
    table_version: int,
    manifest: Manifest,
) -> bool:
    now = ledger.now()
    made = connection.execute(
        upsert(connection, loads)
        .values(
            load_id=load_id,
            table_number=table.number,
            label=manifest.label,
            last=manifest.last,
            state="PREPARED",
            owner=ADOPTED,
            lease_until=now,
            started_at=min((one.verified_at for one in manifest.sources), default=now),
            base_version=table_version,
            purge=manifest.purge,
        )
        # Another that rebuilds at the same time: wait for it, and leave the load to it.
        .on_conflict_do_nothing()
        .returning(loads.c.load_id)
    )
    return made.first() is not None


def _record(
    connection: Connection,
    ledger: Ledger,
    number: int,
    load_id: str,
    table_version: int,
    manifest: Manifest,
) -> None:
    now = ledger.lease_now(connection)
    # The table's row first, then those of files: so two that record at once never deadlock.
    row = connection.execute(
        select(tables.c.truncated_version, tables.c.first_load_at)
        .where(tables.c.number == number)
        .with_for_update(key_share=True)
    ).one()
    if manifest.truncate:
        connection.execute(
            delete(files).where(
                files.c.table_number == number, files.c.table_version <= table_version
            )
        )
        connection.execute(
            update(tables)
            .where(tables.c.number == number, tables.c.truncated_version < table_version)
            .values(truncated_version=table_version)
        )
    if manifest.sources and table_version > row.truncated_version:
        _upsert_files(connection, ledger, number, load_id, table_version, manifest.sources)
    for place, parts in manifest.moved.items():
        connection.execute(
            update(files)
            .where(
                files.c.table_number == number,
                files.c.location == place,
                # A late finalise must not touch what a newer commit recorded.
                files.c.table_version < table_version,
            )
            .values(parts=json.dumps(parts))
        )
    first = min((source.verified_at for source in manifest.sources), default=now)
    if row.first_load_at is None or first < row.first_load_at:
        connection.execute(
            update(tables).where(tables.c.number == number).values(first_load_at=first)
        )
    if manifest.purge and manifest.sources:
        _queue(connection, load_id, manifest)


def _queue(connection: Connection, load_id: str, manifest: Manifest) -> None:
    """The sources are to be removed, or moved under the names they had in the stage."""
    names = {result.location: result.name for result in manifest.results}
    connection.execute(
        upsert(connection, purges).on_conflict_do_nothing(),
        [
            {
                "load_id": load_id,
                "location": source.identity.location,
                "identity": json.dumps(source.identity.to_json()),
                "tries": 0,
                "archive": manifest.archive,
                "name": names.get(source.identity.location),
            }
            for source in manifest.sources
        ],
    )


def _upsert_files(
    connection: Connection,
    ledger: Ledger,
    number: int,
    load_id: str,
    table_version: int,
    sources: Sequence[LoadedFile],
) -> None:
    now = ledger.lease_now(connection)
    statement = upsert(connection, files)
    values = {
        column.name: getattr(statement.excluded, column.name)
        for column in files.columns
        if not column.primary_key
    }
    _for_each(
        connection,
        statement.on_conflict_do_update(
            index_elements=["table_number", "location"],
            set_=values,
            # A late finalise of an older commit must not hide a newer one.
            where=files.c.table_version <= statement.excluded.table_version,
        ),
        (
            {
                "table_number": number,
                "location": source.identity.location,
                "size": source.identity.size,
                "etag": source.identity.etag,
                "last_modified": micros(source.identity.last_modified),
                "version": source.identity.version,
                "token": source.identity.token,
                "metadata": json_of(source.about),
                "content_hash": source.content_hash,
                "verified_at": source.verified_at,
                "expires_at": now + ledger.life,
                "load_id": load_id,
                "rows": source.rows,
                "errors": source.errors,
                "loaded_at": now,
                "table_version": table_version,
                "parts": json.dumps(source.parts, separators=(",", ":")),
            }
            for source in sources
        ),
    )


def _close(
    connection: Connection,
    ledger: Ledger,
    load_id: str,
    state: str,
    manifest: Manifest,
    table_version: int | None,
    message: str | None = None,
) -> None:
    connection.execute(
        update(loads)
        .where(loads.c.load_id == load_id)
        .values(
            state=state,
            finished_at=ledger.now(),
            table_version=table_version,
            manifest=None,
            last=manifest.last,
            files=len(manifest.results),
            rows=sum(result.rows_loaded for result in manifest.results),
            errors=sum(result.errors for result in manifest.results),
            bytes=sum(result.bytes for result in manifest.results),
            message=message,
        )
    )
    connection.execute(delete(claims).where(claims.c.load_id == load_id))
    _for_each(
        connection,
        insert(results),
        ({"load_id": load_id, **result.to_json()} for result in manifest.results),
    )


def _keep_errors(connection: Connection, load_id: str, manifest: Manifest) -> None:
    _for_each(
        connection,
        upsert(connection, errors).on_conflict_do_nothing(),
        (
            {"load_id": load_id, "file": file, "packed": packed}
            for file, packed in manifest.errors.items()
        ),
    )


def _for_each(
    connection: Connection, statement: Executable, rows: Iterable[Mapping[str, Any]]
) -> None:
    """Execute it for all rows, some at a time: the library holds each of them several times."""
    left = iter(rows)
    while some := list(islice(left, TOGETHER)):
        connection.execute(statement, some)
