"""Bring a database to the schema of this release.

The steps lie in ``migrations/versions`` and ship with the package; a database that is
newer than the code is refused rather than guessed at.
"""

from __future__ import annotations

import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect
from sqlalchemy.exc import DBAPIError

from calque.errors import FailedPrecondition
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.errors import database_error
from calque.store.metabase.engine.pools import BEGIN_MODE
from calque.store.metabase.model.schema import metadata

MIGRATIONS = Path(__file__).parent / "migrations"

# Alembic keeps what it works on in module globals; other processes queue in the database.
_ONE_AT_A_TIME = threading.Lock()


def migrate(database: Database, revision: str = "head") -> None:
    """Apply every missing step up to ``revision``; nothing happens when there is none.

    All steps are one transaction. Several processes may call this at once: they queue.
    """
    try:
        with database.engine.connect() as connection:
            # The write lock comes before the first look at what is there.
            _apply(connection.execution_options(**{BEGIN_MODE: "IMMEDIATE"}), revision)
    except DBAPIError as error:
        raise database_error(error.orig or error) from error


def revisions() -> list[str]:
    """The steps, oldest first."""
    script = ScriptDirectory(str(MIGRATIONS))
    return [step.revision for step in reversed(list(script.walk_revisions()))]


def current_revision(database: Database) -> str | None:
    """The step this database is at."""
    with database.engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def _apply(connection: Connection, revision: str) -> None:
    found = MigrationContext.configure(connection).get_current_revision()
    tables = set(inspect(connection).get_table_names())
    connection.rollback()
    known = revisions()
    if found is None and tables & set(metadata.tables):
        raise FailedPrecondition(
            "the metabase has tables, but no note of their schema (alembic_version) is left",
            hint="Restore the database from a backup. If only that note was lost, write it anew: "
            "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY); "
            f"INSERT INTO alembic_version VALUES ('{known[-1]}'), when this release wrote it last.",
        )
    if found is not None and found not in known:
        raise FailedPrecondition(
            f"the metabase has schema {found!r}, which this release does not know",
            hint="It was made by a newer calque: upgrade calque.",
        )
    if found == (known[-1] if revision == "head" else revision):
        return
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    with _ONE_AT_A_TIME:
        command.upgrade(config, revision)
