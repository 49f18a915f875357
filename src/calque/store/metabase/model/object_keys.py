"""Object keys of any length, in the indexes of both databases.

An entry of a PostgreSQL index holds 2.7 kB; an encrypted key may have nine times that. So there
the indexes hold the *head* of a key and, where that is not all of it, a *digest* of the whole.
Heads sort as their keys do. Which keys are equal, between two others, or first, is said here, in
words that those indexes serve; SQLite indexes keys as they are.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, LargeBinary, bindparam
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import and_, func, literal_column
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ClauseList
from sqlalchemy.types import NullType

HEAD_SIZE = 2048
HEAD = f"substr(object_key, 1, {HEAD_SIZE})"
DIGEST = f"(CASE WHEN length(object_key) > {HEAD_SIZE} THEN sha256(object_key) ELSE ''::bytea END)"

Key = ColumnElement[bytes]


class ByDatabase(ColumnElement[Any]):
    """One expression for SQLite, another for PostgreSQL."""

    inherit_cache = False
    type = NullType()  # a Boolean would be compared with 1 on SQLite, which no index serves

    def __init__(self, *, sqlite: Any, postgres: Any) -> None:
        self.sqlite = sqlite
        self.postgres = postgres


@compiles(ByDatabase)
def _for_sqlite(element: ByDatabase, compiler: SQLCompiler, **options: Any) -> str:
    return compiler.process(element.sqlite, **options)


@compiles(ByDatabase, "postgresql")
def _for_postgres(element: ByDatabase, compiler: SQLCompiler, **options: Any) -> str:
    return compiler.process(element.postgres, **options)


def key_parameter(name: str) -> Key:
    """A parameter that is a key."""
    return bindparam(name, type_=LargeBinary)


def key_is(column: Key, wanted: Key) -> ColumnElement[bool]:
    """The key in ``column`` is ``wanted``."""
    return ByDatabase(
        sqlite=column == wanted,
        postgres=and_(_head(column) == _head(wanted), _digest(column) == _digest(wanted)),
    )


def key_between(column: Key, first: Key, end: Key) -> ColumnElement[bool]:
    """The key in ``column`` is ``first`` or behind it, and before ``end``."""
    within = and_(column >= first, column < end)
    heads = and_(_head(column) >= _head(first), _head(column) <= _head(end))
    return ByDatabase(sqlite=within, postgres=and_(heads, within))


def in_key_order(column: Key) -> ColumnElement[Any]:
    """What to order by for keys to rise."""
    return ByDatabase(sqlite=column, postgres=ClauseList(_head(column), column, group=False))


def in_index_order(column: Key) -> ColumnElement[Any]:
    """What to order by where any order serves as long as it costs nothing."""
    return ByDatabase(
        sqlite=column, postgres=ClauseList(_head(column), _digest(column), group=False)
    )


def _head(key: Key) -> ColumnElement[bytes]:
    return func.substr(key, literal_column("1"), literal_column(str(HEAD_SIZE)), type_=LargeBinary)


def _digest(key: Key) -> ColumnElement[bytes]:
    # Written as the index has it: only then PostgreSQL sees that the index serves.
    return _Digest(key)


class _Digest(ColumnElement[bytes]):
    inherit_cache = False
    type = LargeBinary()

    def __init__(self, key: Key) -> None:
        self.key_ = key


@compiles(_Digest)
def _digest_of(element: _Digest, compiler: SQLCompiler, **options: Any) -> str:
    return DIGEST.replace("object_key", compiler.process(element.key_, **options))
