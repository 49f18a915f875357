"""Statements about many streams at once.

PostgreSQL takes their ids as an array. SQLite has none, so it takes them end to end in one value,
and cuts it: a statement for each stream costs three times as much as the rows that it deletes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sqlalchemy import (
    ARRAY,
    ClauseElement,
    ColumnElement,
    LargeBinary,
    any_,
    bindparam,
    column,
    text,
)

from calque.store.metabase.engine.statement import POSTGRES, Statement
from calque.store.metabase.engine.transaction import Parameters, Transaction

_SIZE = 16
_given = bindparam("streams", type_=ARRAY(LargeBinary))
_cut = (
    text(
        "WITH RECURSIVE given(place) AS"
        f" (SELECT 1 UNION ALL SELECT place + {_SIZE} FROM given"
        f" WHERE place + {_SIZE} <= length(:streams))"
        f" SELECT substr(:streams, place, {_SIZE}) AS id FROM given"
    )
    .bindparams(bindparam("streams", type_=LargeBinary))
    .columns(column("id", LargeBinary))
)


def statement_of_streams(
    name: str,
    stream: ColumnElement[bytes],
    make: Callable[[ColumnElement[bool]], ClauseElement],
) -> Statement:
    """The statement that ``make`` gives for the condition that ``stream`` is one of the given."""
    return Statement(name, sqlite=make(stream.in_(_cut)), postgres=make(stream == any_(_given)))


def give_streams(transaction: Transaction, streams: Iterable[bytes]) -> Parameters:
    """The parameters of such a statement, for at least one stream."""
    ids = list(streams)
    return {"streams": ids if transaction.dialect == POSTGRES else b"".join(ids)}
