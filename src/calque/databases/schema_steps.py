"""Bring a database to the schema of this release.

A schema is what its steps made of it: files ``NNNN_what.py`` in a folder that ships with the
package, in the form that Alembic reads. The database notes the last one it took. One that is newer
than the code is refused rather than guessed at.

A new database takes no steps. It gets at once what they would have left in it, which tests compare:
Alembic takes a third of a second to import, and every first command would wait for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    insert,
    inspect,
    text,
)

from calque.databases.transactions import WRITES
from calque.errors import CalqueError

HEAD = "head"


def _find_nothing(connection: Connection) -> str | None:
    return None


def _add_nothing(connection: Connection) -> None:
    """Tables are all there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaSteps:
    """The steps of one schema, and how a database says which of them it took."""

    what: str
    """Whose schema it is, for messages: "the ledger"."""
    folder: Path
    note: str
    """The table that holds the last step; each schema has its own, so that two may share a
    database."""
    lock: int
    """The advisory lock on PostgreSQL. Any number serves, as long as every process takes it."""
    refusal: type[CalqueError]
    """Raised for a schema that this release does not know."""
    find_unnoted: Callable[[Connection], str | None] = _find_nothing
    """The step at which a database without a note stands; raises where it must not be touched."""
    tables: MetaData | None = None
    """The tables as the last step leaves them; None: every database goes through the steps."""
    add_rest: Callable[[Connection], None] = _add_nothing
    """What the steps leave besides: rows, old names."""

    @property
    def revisions(self) -> list[str]:
        """The steps, oldest first."""
        # By their names alone: reading them takes Alembic, which takes as long to import as
        # SQLAlchemy itself, and most databases that are opened are current.
        return sorted(path.stem.partition("_")[0] for path in self.folder.glob("[0-9]*.py"))

    def current(self, connection: Connection) -> str | None:
        """The step this database is at; None without a note."""
        if not inspect(connection).has_table(self.note):
            return None
        found = connection.execute(text(f"SELECT version_num FROM {self.note}")).scalar()
        return None if found is None else str(found)

    def is_at(self, connection: Connection, revision: str = HEAD) -> bool:
        """Whether the database is at this step; a look that locks nobody out."""
        return self.current(connection) == self._named(revision)

    def apply(self, engine: Engine, revision: str = HEAD) -> None:
        """Take every missing step up to ``revision``; nothing happens when there is none.

        All steps are one transaction. Several processes may call this at once: they queue.
        """
        with engine.connect() as connection:
            if self.is_at(connection, revision):
                return
        with engine.connect() as connection:
            writing = connection.execution_options(**{WRITES: True})
            if connection.dialect.name == "postgresql":
                # What another process did while we waited for the lock must be seen after it.
                writing = writing.execution_options(isolation_level="READ COMMITTED")
            with writing.begin():
                self._lock(writing)
                self._take_missing(writing, revision)

    def _lock(self, connection: Connection) -> None:
        """On SQLite the transaction holds the write lock already."""
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": self.lock})

    def _take_missing(self, connection: Connection, revision: str) -> None:
        noted = self.current(connection)
        found = noted or self.find_unnoted(connection)
        if found is not None and found not in self.revisions:
            raise self.refusal(
                f"{self.what} has schema {found!r}, which this release does not know",
                hint="It was made by a newer calque: upgrade calque.",
            )
        wanted = self._named(revision)
        if noted == wanted:
            return  # another process was quicker
        if found is None and wanted == self.revisions[-1] and self._is_blank(connection):
            self._make_whole(connection)
            return
        from calque.databases.alembic_steps import run_steps

        run_steps(
            connection,
            self.folder,
            self.note,
            begin=found if noted is None else None,
            end=wanted,
        )

    def _is_blank(self, connection: Connection) -> bool:
        """Whether nothing of the schema is there; a note that was lost leaves its tables behind."""
        if self.tables is None:
            return False
        return not {self.note, *self.tables.tables} & set(inspect(connection).get_table_names())

    def _make_whole(self, connection: Connection) -> None:
        assert self.tables is not None
        self.tables.create_all(connection, checkfirst=False)
        self.add_rest(connection)
        note = Table(  # as Alembic makes it
            self.note,
            MetaData(),
            Column("version_num", String(32), nullable=False),
            PrimaryKeyConstraint("version_num", name=f"{self.note}_pkc"),
        )
        note.create(connection, checkfirst=False)
        connection.execute(insert(note).values(version_num=self.revisions[-1]))

    def _named(self, revision: str) -> str:
        return self.revisions[-1] if revision == HEAD else revision
