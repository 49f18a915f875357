"""Pieces whose node said nothing at an audit: asked for again before it counts."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import bindparam, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.model.schema import silent_audits
from calque.store.metabase.upkeep.upsert import upsert_statement

_silent = silent_audits.c

NOTE_SILENT = Statement(
    "note a silent audit",
    sqlite=sqlite.insert(silent_audits).on_conflict_do_nothing(),
    postgres=postgresql.insert(silent_audits).on_conflict_do_nothing(),
)
KEEP_SILENT = upsert_statement("keep a silent audit", silent_audits)
DUE_AUDITS = Statement(
    "silent audits that are due",
    select(silent_audits)
    .where(_silent.next_at <= bindparam("before"))
    .order_by(_silent.next_at)
    .limit(bindparam("page")),
)
FORGET_SILENT = Statement(
    "forget a silent audit",
    delete(silent_audits).where(
        _silent.alias == bindparam("of_alias"),
        _silent.stream_id == bindparam("of_stream"),
        _silent.position == bindparam("at_position"),
    ),
)


class SilentAudit(NamedTuple):
    """A row of ``silent_audits``."""

    alias: int
    stream_id: bytes
    position: int
    root_piece_id: bytes
    stripe: int
    tries: int
    next_at: int


def note_silent(database: Database, silent: SilentAudit) -> None:
    """A node said nothing; a piece that is waited for already stays as it is.

    Else one that is drawn again and again would never be asked for the last time.
    """
    database.write(lambda transaction: transaction.run(NOTE_SILENT, silent._asdict()))


def keep_silent(database: Database, silent: SilentAudit) -> None:
    """Ask for this piece again at its time."""
    database.write(lambda transaction: transaction.run(KEEP_SILENT, silent._asdict()))


def due_audits(database: Database, page: int = 1000) -> list[SilentAudit]:
    """Those to be asked for again now."""
    asked = {"before": database.clock(), "page": page}
    return [SilentAudit(*row) for row in database.read_rows(DUE_AUDITS, asked)]


def forget_silent(database: Database, done: SilentAudit) -> None:
    """It has answered, or it counts now."""
    where = {
        "of_alias": done.alias, "of_stream": done.stream_id, "at_position": done.position,
    }  # fmt: skip
    database.write(lambda transaction: transaction.run(FORGET_SILENT, where))
