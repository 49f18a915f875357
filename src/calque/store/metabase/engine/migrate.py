"""Bring a metabase to the schema of this release; the steps lie in ``migrations/``."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect
from sqlalchemy.exc import SQLAlchemyError

from calque.databases.schema_steps import HEAD, SchemaSteps
from calque.errors import FailedPrecondition
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.errors import database_error
from calque.store.metabase.model.schema import metadata


def migrate(database: Database, revision: str = HEAD) -> None:
    """Apply every missing step up to ``revision``; nothing happens when there is none.

    All steps are one transaction. Several processes may call this at once: they queue.
    """
    try:
        STEPS.apply(database.engine, revision)
    except SQLAlchemyError as error:
        raise database_error(error) from error


def revisions() -> list[str]:
    """The steps, oldest first."""
    return STEPS.revisions


def current_revision(database: Database) -> str | None:
    """The step this database is at."""
    with database.engine.connect() as connection:
        return STEPS.current(connection)


def _refuse_unnoted(connection: Connection) -> None:
    if set(inspect(connection).get_table_names()) & set(metadata.tables):
        raise FailedPrecondition(
            "the metabase has tables, but no note of their schema (alembic_version) is left",
            hint="Restore the database from a backup. If only that note was lost, write it anew: "
            "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY); "
            f"INSERT INTO alembic_version VALUES ('{revisions()[-1]}'), when this release wrote it "
            "last.",
        )


STEPS = SchemaSteps(
    what="the metabase",
    folder=Path(__file__).parent / "migrations" / "versions",
    note="alembic_version",
    lock=0x63616C717565,
    refusal=FailedPrecondition,
    find_unnoted=_refuse_unnoted,
    tables=metadata,
)
