"""Many new rows of one table: PostgreSQL copies them in, SQLite takes them as one statement.

As arrays of values they would cost PostgreSQL's driver and server several times as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from sqlalchemy import BigInteger, Integer, LargeBinary, Table, insert

from calque.store.metabase.engine.statement import POSTGRES, Statement
from calque.store.metabase.engine.transaction import Parameters, Transaction

_TYPES: dict[type, str] = {LargeBinary: "bytea", BigInteger: "int8", Integer: "int4"}


class BulkInsert:
    """Rows of ``table``, with every column by its name. A key that is there is an error."""

    def __init__(self, name: str, table: Table) -> None:
        self._statement = Statement(name, sqlite=insert(table))
        self._values = itemgetter(*(column.name for column in table.c))
        self._types = [_TYPES[type(column.type)] for column in table.c]
        columns = ", ".join(f'"{column.name}"' for column in table.c)
        self._copy = f"COPY {table.name} ({columns}) FROM STDIN (FORMAT BINARY)"

    def run(self, transaction: Transaction, rows: Sequence[Parameters]) -> None:
        """Insert them all."""
        if transaction.dialect == POSTGRES:
            transaction.copy_in(self._copy, self._types, map(self._values, rows))
        else:
            transaction.batch([(self._statement, row) for row in rows])
