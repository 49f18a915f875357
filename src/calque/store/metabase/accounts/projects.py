"""Projects, their limits and usage, and the secrets of a satellite."""

from __future__ import annotations

import os
from typing import NamedTuple

from sqlalchemy import bindparam, func, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from calque.errors import AlreadyExists, InvalidInput, NotFound
from calque.store.metabase.accounts.quota import CLOSED, LOCK_SHARDS, Usage, shard_count
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model.records import PROJECT_ID_SIZE
from calque.store.metabase.model.schema import project_usage, projects, settings

SALT_SIZE = 32

INSERT_PROJECT = Statement("insert a project", insert(projects))
INSERT_SHARD = Statement("insert a shard", insert(project_usage))
PROJECT_BY_NAME = Statement(
    "project by name", select(projects).where(projects.c.name == bindparam("of_name"))
)
PROJECT_BY_ID = Statement(
    "project by id", select(projects).where(projects.c.project_id == bindparam("project"))
)
SET_LIMITS = Statement(
    "set the limits of a project",
    update(projects)
    .where(projects.c.project_id == bindparam("project"))
    .values(limit_bytes=bindparam("new_bytes"), limit_segments=bindparam("new_segments")),
)
CLOSE_SHARDS = Statement(
    # Usage stays where it is; allowances that are used up make the next charge spread anew.
    "close the shards of a project",
    update(project_usage)
    .where(project_usage.c.project_id == bindparam("project"))
    .values(
        allowed_bytes=bindparam("new_bytes"),
        allowed_segments=bindparam("new_segments"),
    ),
)
PROJECT_USAGE = Statement(
    "usage of a project",
    select(
        func.coalesce(func.sum(project_usage.c.bytes), 0),
        func.coalesce(func.sum(project_usage.c.segments), 0),
        func.coalesce(func.sum(project_usage.c.objects), 0),
    ).where(project_usage.c.project_id == bindparam("project")),
)
SETTING = Statement(
    "a setting", select(settings.c.value).where(settings.c.name == bindparam("of_name"))
)
KEEP_SETTING = Statement(
    "keep a setting that is not there",
    sqlite=sqlite.insert(settings).on_conflict_do_nothing(),
    postgres=postgresql.insert(settings).on_conflict_do_nothing(),
)


class ProjectRecord(NamedTuple):
    """A row of ``projects``; limits of ``None`` are no limits."""

    project_id: bytes
    name: str
    salt: bytes
    created_at: int
    limit_bytes: int | None
    limit_segments: int | None

    @property
    def id(self) -> bytes:
        """The project's id."""
        return self.project_id


def create_project(
    database: Database,
    name: str,
    *,
    limit_bytes: int | None = None,
    limit_segments: int | None = None,
) -> ProjectRecord:
    """Make a project with a salt of its own; ``AlreadyExists`` when the name is taken."""
    if not name:
        raise InvalidInput("project name is missing")
    _check_limits(limit_bytes, limit_segments)

    def work(transaction: Transaction) -> ProjectRecord:
        if transaction.row(PROJECT_BY_NAME, {"of_name": name}):
            raise AlreadyExists(f"project {name!r} exists already")
        record = ProjectRecord(
            os.urandom(PROJECT_ID_SIZE),
            name,
            os.urandom(SALT_SIZE),
            transaction.now,
            limit_bytes,
            limit_segments,
        )
        transaction.run(INSERT_PROJECT, record._asdict())
        _insert_shards(transaction, record)
        return record

    return database.write(work)


def get_project(database: Database, project_id: bytes) -> ProjectRecord:
    """The project with this id, or ``NotFound``."""
    row = database.read(lambda transaction: transaction.row(PROJECT_BY_ID, {"project": project_id}))
    if row is None:
        raise NotFound("the project does not exist")
    return ProjectRecord(*row)


def find_project(database: Database, name: str) -> ProjectRecord | None:
    """The project with this name, if there is one."""
    row = database.read(lambda transaction: transaction.row(PROJECT_BY_NAME, {"of_name": name}))
    return ProjectRecord(*row) if row else None


def set_limits(
    database: Database,
    project_id: bytes,
    *,
    limit_bytes: int | None,
    limit_segments: int | None,
) -> None:
    """Change a project's limits; what it holds already stays, even beyond them."""
    _check_limits(limit_bytes, limit_segments)

    def work(transaction: Transaction) -> None:
        transaction.rows(LOCK_SHARDS, {"project": project_id})
        limits = {"project": project_id, "new_bytes": limit_bytes, "new_segments": limit_segments}
        if transaction.run(SET_LIMITS, limits) == 0:
            raise NotFound("the project does not exist")
        closed = {
            "project": project_id,
            "new_bytes": None if limit_bytes is None else CLOSED,
            "new_segments": None if limit_segments is None else CLOSED,
        }
        transaction.run(CLOSE_SHARDS, closed)

    database.write(work)


def project_usage_of(database: Database, project_id: bytes) -> Usage:
    """What the project uses now."""
    row = database.read(lambda transaction: transaction.row(PROJECT_USAGE, {"project": project_id}))
    return Usage(*(int(number) for number in row or (0, 0, 0)))


def keep_setting(database: Database, name: str, fresh: bytes) -> bytes:
    """The value kept under ``name``; ``fresh`` is kept when there is none yet."""

    def work(transaction: Transaction) -> bytes:
        transaction.run(KEEP_SETTING, {"name": name, "value": fresh})
        return bytes(transaction.rows(SETTING, {"of_name": name})[0][0])

    return database.write(work)


def _insert_shards(transaction: Transaction, record: ProjectRecord) -> None:
    for number in range(shard_count(transaction.dialect)):
        transaction.run(
            INSERT_SHARD,
            {
                "project_id": record.project_id,
                "shard": number,
                "bytes": 0,
                "segments": 0,
                "objects": 0,
                "allowed_bytes": None if record.limit_bytes is None else CLOSED,
                "allowed_segments": None if record.limit_segments is None else CLOSED,
                "changes": 0,
            },
        )


def _check_limits(*limits: int | None) -> None:
    if any(limit is not None and limit < 0 for limit in limits):
        raise InvalidInput("a limit cannot be negative; leave it out for no limit")
