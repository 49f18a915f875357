"""Statements: written with SQLAlchemy Core, compiled once for each database.

Every piece of SQL the metabase runs is a :class:`Statement` made at import. That keeps
the hot path free of statement building, and gives the tests a complete list to EXPLAIN:
no statement may scan a whole table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from sqlalchemy import ClauseElement, ColumnElement, Table, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect

SQLITE = "sqlite"
POSTGRES = "postgresql"
_PARAMETER = re.compile(r"%\((\w+)\)s")

_DIALECTS: Mapping[str, Dialect] = {
    SQLITE: sqlite.dialect(paramstyle="named"),
    POSTGRES: postgresql.psycopg.dialect(),  # type: ignore[no-untyped-call]
}


class Statement:
    """One named statement with named parameters, in the words of each database.

    ``sqlite`` or ``postgres`` replace the general construct where the two must differ.
    """

    registry: ClassVar[dict[str, Statement]] = {}

    def __init__(
        self,
        name: str,
        construct: ClauseElement | None = None,
        *,
        sqlite: ClauseElement | None = None,
        postgres: ClauseElement | None = None,
        whole_table: str = "",
    ) -> None:
        if name in self.registry:
            raise ValueError(f"two statements are called {name!r}")
        self.name = name
        self.whole_table = whole_table
        self._constructs = {
            SQLITE: construct if sqlite is None else sqlite,
            POSTGRES: construct if postgres is None else postgres,
        }
        self._texts: dict[str, tuple[str, tuple[str, ...]]] = {}
        self.registry[name] = self

    def __repr__(self) -> str:
        return f"Statement({self.name!r})"

    def exists_for(self, database: str) -> bool:
        """Whether this database has the statement at all."""
        return self._constructs[database] is not None

    def sql(self, database: str) -> str:
        """The text for ``database``; compiled at the first call."""
        return self._text(database)[0]

    def gives_rows(self, database: str) -> bool:
        """Whether it answers with rows; else it only changes some."""
        text = self.sql(database)
        return text.startswith("SELECT") or "RETURNING" in text

    def names(self, database: str) -> tuple[str, ...]:
        """The parameters in the order of their numbers (PostgreSQL only: ``$1``, ``$2`` …)."""
        return self._text(database)[1]

    def for_postgres(self, parameters: Mapping[str, Any]) -> tuple[str, list[Any]]:
        """The text for PostgreSQL and its parameters by number, as the server wants them."""
        text, names = self._text(POSTGRES)
        return text, [parameters[name] for name in names]

    def inline(self, expressions: Mapping[str, str]) -> str:
        """The text for PostgreSQL with ``expressions`` of a procedure in place of parameters."""
        text = _PARAMETER.sub(lambda found: expressions[found[1]], self._with_constants(POSTGRES))
        return text.replace("%%", "%")

    def _text(self, database: str) -> tuple[str, tuple[str, ...]]:
        found = self._texts.get(database)
        if found is None:
            text = self._with_constants(database)
            found = _number_parameters(text) if database == POSTGRES else (text, ())
            self._texts[database] = found
        return found

    def _with_constants(self, database: str) -> str:
        """The SQL with its constants written out, so that only real parameters remain."""
        compiled = self.compile(database)
        text = str(compiled)
        for name, bind in compiled.binds.items():
            if not bind.required:
                sign = f":{name}" if database == SQLITE else f"%({name})s"
                text = re.sub(re.escape(sign) + r"(?!\w)", _constant(bind.value), text)
        return text

    def compile(self, database: str) -> Any:
        """The compiled construct, with its parameters and their types."""
        construct = self._constructs[database]
        if construct is None:
            raise ValueError(f"{self.name} is not a statement of {database}")
        return construct.compile(dialect=_DIALECTS[database])


def rewrite_statement(
    name: str,
    table: Table,
    changes: Mapping[str, ColumnElement[Any]],
    *where: ColumnElement[bool],
    under: Mapping[str, ColumnElement[Any]] | None = None,
) -> Statement:
    """A statement that sets columns of rows that are there, from the rows that ``where`` finds.

    Those are the same ones, or with ``under`` their like with other key columns. They meet through
    the primary key: an UPDATE with a join leaves the way to the planner, and where statistics
    promise one segment a stream PostgreSQL compares each of 10,000 with each other one.
    """
    given = {**changes, **(under or {})}
    rows = select(*[given.get(column.name, column) for column in table.c]).where(*where)

    def of(insert: Callable[[Table], Any]) -> ClauseElement:
        inserted = insert(table).from_select([column.name for column in table.c], rows)
        changed: ClauseElement = inserted.on_conflict_do_update(
            index_elements=[column.name for column in table.primary_key],
            set_={column: inserted.excluded[column] for column in changes},
        )
        return changed

    return Statement(name, sqlite=of(sqlite.insert), postgres=of(postgresql.insert))


def _constant(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, int):
        return str(int(value))
    raise TypeError(f"{value!r} must be a parameter, not a constant")


def _number_parameters(text: str) -> tuple[str, tuple[str, ...]]:
    """Named parameters as numbers: the driver then has nothing left to translate."""
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        if found[1] not in names:
            names.append(found[1])
        return f"${names.index(found[1]) + 1}"

    return _PARAMETER.sub(number, text).replace("%%", "%"), tuple(names)
