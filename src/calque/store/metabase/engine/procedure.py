"""Procedures: several statements that PostgreSQL runs in one trip, each seeing what the last left.

A procedure is made of :class:`Statement` objects like those that are executed one by one elsewhere,
so what they have in common is written once. It lives in the temporary schema of a connection: it
comes and goes with the release that wrote it, and no migration has to keep it in step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakSet

from calque.store.metabase.engine.libpq import execute_prepared

_LOCK_MS = 1000
"""A procedure cannot ask in its midst whether its caller is still there, so it does not wait long:
who meets a lock that is held goes the long way, and asks again there."""


class Procedure:
    """``body`` in PL/pgSQL over ``arguments`` (SQL types by name), returning one row."""

    def __init__(self, name: str, arguments: Mapping[str, str], returns: str, body: str) -> None:
        self._names = tuple(arguments)
        self._known: WeakSet[Any] = WeakSet()
        signature = ", ".join(f"{argument(name)} {kind}" for name, kind in arguments.items())
        values = ", ".join(f"${n}::{kind}" for n, kind in enumerate(arguments.values(), 1))
        self._definition = (
            f"CREATE OR REPLACE FUNCTION pg_temp.{name}({signature}) RETURNS {returns} "
            f"LANGUAGE plpgsql SET lock_timeout = {_LOCK_MS} AS $body$ {body} $body$"
        )
        self._call = f"SELECT * FROM pg_temp.{name}({values})"

    def call(self, connection: Any, parameters: Mapping[str, Any]) -> Any | None:
        """The row that it returns; ``None`` if the server leaves every column of it NULL."""
        # Temporary things go with their connection: a new one has to be told again.
        if connection not in self._known:
            connection.execute(self._definition)
            self._known.add(connection)
        (row,) = execute_prepared(
            connection, self._call, [parameters[name] for name in self._names]
        )
        return None if row[0] is None else row


def argument(name: str) -> str:
    """How a body refers to an argument: no column is called so."""
    return f"p_{name}"
