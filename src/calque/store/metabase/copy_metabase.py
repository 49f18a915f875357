"""A whole metabase into another database, of either kind, as one snapshot saw it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlalchemy import Connection, Table, func, insert, select
from sqlalchemy.exc import DBAPIError

from calque.errors import AlreadyExists
from calque.store.metabase.accounts.quota import CLOSED, shard_count
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.errors import database_error
from calque.store.metabase.engine.migrate import migrate
from calque.store.metabase.engine.statement import POSTGRES
from calque.store.metabase.model.schema import (
    leases,
    metadata,
    project_usage,
    projects,
    settings,
)
from calque.store.metabase.objects.hold_pieces import HOLD

_ROWS = 1000


def copy_metabase(
    source: Database, target: Database, tell: Callable[[int], None] = lambda _: None
) -> None:
    """Copy every row; writers of ``source`` go on meanwhile, and ``target`` is whole or empty.

    ``tell`` is called again and again with the number of rows so far. AlreadyExists when ``target``
    holds a metabase with projects.
    """
    copied = 0
    migrate(target)
    level = {"isolation_level": "REPEATABLE READ"} if source.dialect == POSTGRES else {}
    try:
        with source.engine.connect() as reading, target.engine.begin() as writing:
            if writing.execute(select(projects.c.project_id).limit(1)).first():
                raise AlreadyExists("the database holds a store already: name an empty one")
            snapshot = reading.execution_options(**level, stream_results=True)
            writing.execute(settings.delete())
            for table in metadata.sorted_tables:
                # Leases are of processes, which have nothing to do with the copy.
                if table not in (project_usage, leases):
                    for rows in _copy_table(snapshot, writing, table):
                        copied += rows
                        tell(copied)
            _copy_usage(snapshot, writing, shard_count(target.dialect))
    except DBAPIError as error:
        raise database_error(error.orig or error) from error


def _copy_table(reading: Connection, writing: Connection, table: Table) -> Iterator[int]:
    """Copy a page of rows at a time; how many those were."""
    rows = reading.execute(select(table)).yield_per(_ROWS).mappings()
    for some in rows.partitions(_ROWS):
        # The hold of the backup itself is no part of it.
        kept = [dict(row) for row in some if table is not settings or row["name"] != HOLD]
        if kept:
            writing.execute(insert(table), kept)
        yield len(kept)


def _copy_usage(reading: Connection, writing: Connection, shards: int) -> None:
    """The two databases spread usage differently; the first charge spreads the limits anew."""
    names = ("bytes", "segments", "objects", "changes")
    columns = [project_usage.c[name] for name in names]
    used = {
        project: [int(number) for number in numbers]
        for project, *numbers in reading.execute(
            select(
                project_usage.c.project_id, *(func.coalesce(func.sum(each), 0) for each in columns)
            ).group_by(project_usage.c.project_id)
        )
    }
    limits = (projects.c.project_id, projects.c.limit_bytes, projects.c.limit_segments)
    for project, most_bytes, most_segments in reading.execute(select(*limits)).all():
        numbers = used.get(project, [0] * len(names))
        for shard in range(shards):
            row = dict(zip(names, numbers, strict=True))
            writing.execute(
                insert(project_usage).values(
                    project_id=project,
                    shard=shard,
                    allowed_bytes=None if most_bytes is None else CLOSED,
                    allowed_segments=None if most_segments is None else CLOSED,
                    **(row if shard == 0 else dict.fromkeys(row, 0)),
                )
            )
