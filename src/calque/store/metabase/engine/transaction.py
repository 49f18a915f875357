"""One open transaction: how every operation executes its statements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from calque.store.metabase.engine.statement import SQLITE, Statement

Parameters = Mapping[str, Any]
Step = tuple[Statement, Parameters]
"""A statement with its values, to be executed in a batch with others."""


class Transaction:
    """One open transaction; ``now`` is its time, read once.

    ``opening`` is what begins it: it goes out with the first statement, so that on
    PostgreSQL it costs no trip of its own.
    """

    def __init__(self, connection: Any, dialect: str, now: int, opening: str = "") -> None:
        self._connection = connection
        self._opening = opening
        self.dialect = dialect
        self.now = now

    def rows(self, statement: Statement, parameters: Parameters) -> list[Any]:
        """Every row that ``statement`` gives."""
        found: list[Any] = self._execute(statement, parameters).fetchall()
        return found

    def row(self, statement: Statement, parameters: Parameters) -> Any | None:
        """The first row, or ``None``."""
        return self._execute(statement, parameters).fetchone()

    def run(self, statement: Statement, parameters: Parameters) -> int:
        """Execute; returns how many rows it changed."""
        changed: int = self._execute(statement, parameters).rowcount
        return changed

    def batch(self, work: Sequence[Step]) -> list[list[Any]]:
        """Execute in order and give the rows of each; PostgreSQL answers all in one trip."""
        if self.dialect == SQLITE or not work:
            return self._one_by_one(work)
        cursors = self._in_one_trip(work)
        return [cursor.fetchall() if cursor.pgresult.nfields else [] for cursor in cursors]

    def _one_by_one(self, work: Sequence[Step]) -> list[list[Any]]:
        """A run of the same change goes to SQLite at once: half the cost of a mass delete was the
        way to it and back."""
        answers: list[list[Any]] = []
        for statement, steps in groupby(work, key=itemgetter(0)):
            given = [parameters for _, parameters in steps]
            if len(given) > 1 and not statement.gives_rows(SQLITE):
                self._open()
                self._connection.executemany(statement.sql(SQLITE), given)
                answers += [[] for _ in given]
            else:
                answers += [self.rows(statement, parameters) for parameters in given]
        return answers

    def run_batch(self, work: Sequence[Step]) -> list[int]:
        """Execute in order and tell how many rows each changed."""
        if self.dialect == SQLITE:
            return [self.run(statement, parameters) for statement, parameters in work]
        return [cursor.rowcount for cursor in self._in_one_trip(work)]

    def copy_in(self, text: str, types: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Rows for a ``COPY … FROM STDIN`` in PostgreSQL's own format."""
        self._open()
        with self._connection.cursor() as cursor, cursor.copy(text) as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)

    def _in_one_trip(self, work: Sequence[Step]) -> list[Any]:
        with self._connection.pipeline():
            return [self._execute(statement, parameters) for statement, parameters in work]

    def _open(self) -> None:
        if self._opening:
            self._connection.execute(self._opening)
            self._opening = ""

    def _execute(self, statement: Statement, parameters: Parameters) -> Any:
        self._open()
        if self.dialect == SQLITE:
            return self._connection.execute(statement.sql(SQLITE), parameters)
        text, values = statement.for_postgres(parameters)
        return self._connection.execute(text, values, binary=True)
