"""Room kept on the disk of PostgreSQL, so that deletes work when the disk is full.

A delete writes too: what is to be freed on nodes goes into a queue, and a table grows by whole
pages. A table that nobody reads keeps some pages. A delete that finds the disk full has it dropped,
which gives the pages back to the disk, and goes on. The table is not logged: it costs nothing but
its room, and is empty after a crash, until the next look at it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any

from calque.errors import CalqueError
from calque.store.metabase.engine.errors import Disturbed

TABLE = "room_for_deletes"
PAGES = 1024
"""8 MiB: the queue of some 50,000 segments."""
EVERY = 256
"""Writes after which the table is looked at again: it may be new, or a server may have crashed."""

_PAGE = 8192
_FILLING = 8000
"""Bytes of a row, of which a page holds one."""
_SIZE = f"SELECT pg_relation_size(to_regclass('{TABLE}'))"
_MAKE = (
    f"CREATE UNLOGGED TABLE IF NOT EXISTS {TABLE} (filling text) WITH (autovacuum_enabled = off)"
)
# Neither compressed nor moved elsewhere: a row is to fill its page.
_KEEP_WHOLE = f"ALTER TABLE {TABLE} ALTER COLUMN filling SET STORAGE PLAIN"
_FILL = f"INSERT INTO {TABLE} SELECT repeat('x', {_FILLING}) FROM generate_series(1, $1::int)"
# Emptying it would make new files, which have a first page: on a full disk that fails.
_DROP = f"DROP TABLE IF EXISTS {TABLE}"


class TableReserve:
    """The room beside the tables of one database. Processes may share it; threads too.

    ``connect`` lends a connection that commits each statement by itself.
    """

    def __init__(self, connect: Callable[[], AbstractContextManager[Any]]) -> None:
        self._connect = connect
        self._writes = 0

    def keep_now_and_then(self) -> None:
        """Call it before each write; most calls cost nothing."""
        # Threads may count a write twice or not at all: it need not be exact.
        if self._writes % EVERY == 0:
            self.keep()
        self._writes += 1

    def keep(self) -> None:
        """Make the table, or fill it, if the disk has the room and the user may."""
        # Without it everything works until the disk is full: no error is worth a failed write.
        with suppress(CalqueError, Disturbed), self._connect() as connection:
            size = connection.execute(_SIZE).fetchone()[0]
            if size is None:
                connection.execute(_MAKE)
                connection.execute(_KEEP_WHOLE)
            missing = PAGES - (size or 0) // _PAGE
            if missing > 0:
                connection.execute(_FILL, [missing])

    def give_up(self) -> None:
        """Free the room."""
        with suppress(CalqueError, Disturbed), self._connect() as connection:
            connection.execute(_DROP)
