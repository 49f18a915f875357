"""Engines for PostgreSQL: when a silent server is given up, and how long others may be held up."""

from __future__ import annotations

import logging
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine import ExceptionContext

from calque.databases.errors import code_of
from calque.databases.transactions import WRITES
from calque.errors import MissingExtra

# A connection that breaks is retried or raised by us. Without a handler of their own the drivers
# would also write it, with a traceback, to the terminal of whoever has not set up logging.
for _name in ("sqlalchemy", "psycopg"):
    logging.getLogger(_name).addHandler(logging.NullHandler())

LIVENESS = {
    "connect_timeout": "30",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
"""A server that loses its power or its network says no farewell; by default libpq would wait two
hours for its answer, and all callers with it. So a connection is given up after half a minute
without one, and an answer after a minute in which the server's machine says nothing."""


def open_postgres(url: URL, *, what: str, **pool: Any) -> Engine:
    """An engine for the server; nothing connects yet. ``pool`` goes to ``create_engine``.

    What the URL itself says of liveness goes first. ``what`` names who needs the driver.
    """
    # Not in the URL: messages show it, and the user wrote it otherwise.
    liveness = {name: value for name, value in LIVENESS.items() if name not in url.query}
    try:
        engine = create_engine(
            url.set(drivername="postgresql+psycopg"), connect_args=liveness, **pool
        )
    except ImportError as error:
        raise MissingExtra.of("postgres", what) from error
    event.listen(engine, "handle_error", _raise_stop)
    return engine


def _raise_stop(context: ExceptionContext) -> None:
    """Let Ctrl-C be Ctrl-C where it struck while a connection was tried out.

    SQLAlchemy sets that back then, which the driver refuses in the middle of a statement; and its
    refusal is what would be told. A server's own errors have a state, and are left as they are.
    """
    error: BaseException | None = context.original_exception
    if type(error).__name__ != "ProgrammingError" or code_of(context.original_exception):
        return
    while error is not None:
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise error
        error = error.__context__


def end_frozen_writers(engine: Engine, idle_seconds: float, lock_seconds: float) -> None:
    """A writer that freezes inside a transaction loses it, and with it the locks others wait for.

    Reads hold no lock that a writer waits for, so they are left alone.
    """
    limits = (
        f"SET LOCAL idle_in_transaction_session_timeout = {round(idle_seconds * 1000)}; "
        f"SET LOCAL lock_timeout = {round(lock_seconds * 1000)}"
    )

    @event.listens_for(engine, "begin")
    def limit(connection: Connection) -> None:
        if connection.get_execution_options().get(WRITES):
            connection.exec_driver_sql(limits)
