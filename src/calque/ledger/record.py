"""The rows that the end of a load writes, in the caller's transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Executable, delete, insert, select, update

from calque.ledger.database import Ledger
from calque.ledger.files import json_of
from calque.ledger.identity import micros
from calque.ledger.manifest import LoadedFile, Manifest
from calque.ledger.schema import claims, errors, files, loads, purges, results, tables
from calque.ledger.tables import upsert

ROWS_AT_ONCE = 5000
"""Rows of one statement: SQLAlchemy holds each of them several times while it executes it."""


def record_sources(
    connection: Connection,
    ledger: Ledger,
    number: int,
    load_id: str,
    table_version: int,
    manifest: Manifest,
) -> None:
    """What a load brought to the table of this number, as its commit ``table_version``.

    May come late, after newer commits were recorded: those are left as they are.
    """
    now = ledger.lease_now(connection)
    # The table's row first, then those of files: so two that record at once never deadlock.
    row = connection.execute(
        select(tables.c.truncated_version, tables.c.first_load_at)
        .where(tables.c.number == number)
        .with_for_update(key_share=True)
    ).one()
    if manifest.truncate:
        _drop_truncated(connection, number, table_version)
    # Rows that came before the last truncation are gone, though their load is finalised only now.
    if manifest.sources and table_version > row.truncated_version:
        _upsert_files(connection, ledger, number, load_id, table_version, manifest.sources)
    _move_parts(connection, number, table_version, manifest)
    first = min((source.verified_at for source in manifest.sources), default=now)
    if row.first_load_at is None or first < row.first_load_at:
        connection.execute(
            update(tables).where(tables.c.number == number).values(first_load_at=first)
        )
    if manifest.purge and manifest.sources:
        _queue_purges(connection, load_id, manifest)


def _drop_truncated(connection: Connection, number: int, table_version: int) -> None:
    connection.execute(
        delete(files).where(files.c.table_number == number, files.c.table_version <= table_version)
    )
    connection.execute(
        update(tables)
        .where(tables.c.number == number, tables.c.truncated_version < table_version)
        .values(truncated_version=table_version)
    )


def _move_parts(
    connection: Connection, number: int, table_version: int, manifest: Manifest
) -> None:
    """Note where rows of other sources stand now, since their data file was rewritten."""
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


def _queue_purges(connection: Connection, load_id: str, manifest: Manifest) -> None:
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
    _execute_for_all(
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


def close_load(
    connection: Connection,
    ledger: Ledger,
    load_id: str,
    state: str,
    manifest: Manifest,
    table_version: int | None,
    message: str | None = None,
) -> None:
    """The load is over: state, sums and results are kept; manifest and claims go with it.

    In the transaction that records its files, so that no file is ever both claimed and loaded, nor
    neither.
    """
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
    _execute_for_all(
        connection,
        insert(results),
        ({"load_id": load_id, **result.to_json()} for result in manifest.results),
    )


def keep_errors(connection: Connection, load_id: str, manifest: Manifest) -> None:
    """Keep the rejected rows of each file; those that were kept when it was prepared stay."""
    _execute_for_all(
        connection,
        upsert(connection, errors).on_conflict_do_nothing(),
        (
            {"load_id": load_id, "file": file, "packed": packed}
            for file, packed in manifest.errors.items()
        ),
    )


def _execute_for_all(
    connection: Connection, statement: Executable, rows: Iterable[Mapping[str, Any]]
) -> None:
    """Execute it for all rows, some at a time."""
    left = iter(rows)
    while some := list(islice(left, ROWS_AT_ONCE)):
        connection.execute(statement, some)
