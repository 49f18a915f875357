"""The three ways to know an original's copies that the founding document weighs.

A counter in ``segments`` (with the ancestor beside it), a list of copies in ``segments``, and a
table of references: each in tables of its own on both databases, with many other objects beside.
Measured is what the document calls the most common case: copy an object, then delete the original.
``python -m bench.store_designs [scale]``; the result is in decision 0019.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import psycopg

from bench.store_meta import running_postgres
from bench.table import Row, asked_scale, seconds, show

SEGMENTS = 10
PIECES = b"p" * 40


class Connection(Protocol):
    """A driver's connection, as far as it is needed here."""

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Any: ...
    def executemany(self, sql: str, rows: Sequence[Sequence[Any]]) -> Any: ...


class Postgres:
    """PostgreSQL's driver, given the words of SQLite."""

    _WORDS = ((" WITHOUT ROWID", ""), ("BLOB", "bytea"), ("x''", "''::bytea"), ("?", "%s"))

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Any:
        return self._connection.execute(self._translate(sql), values)

    def executemany(self, sql: str, rows: Sequence[Sequence[Any]]) -> Any:
        with self._connection.cursor() as cursor:
            cursor.executemany(self._translate(sql), rows)

    def _translate(self, sql: str) -> Any:
        for ours, theirs in self._WORDS:
            sql = sql.replace(ours, theirs)
        return sql

    def close(self) -> None:
        self._connection.close()


@contextmanager
def on_sqlite() -> Iterator[Connection]:
    """An empty database in a file."""
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(f"{folder}/designs.db", isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        yield connection
        connection.close()


@contextmanager
def on_postgres() -> Iterator[Connection]:
    """An empty database of a server of its own."""
    with running_postgres() as server:
        connection = Postgres(server.database().replace("+psycopg", ""))
        yield connection
        connection.close()


DATABASES = {"sqlite": on_sqlite, "postgresql": on_postgres}


class Design(Protocol):
    """A way to copy and to delete; ``stream`` ids are 16 bytes."""

    def make(self, connection: Connection) -> None: ...
    def upload(self, connection: Connection, stream: bytes) -> None: ...
    def copy(self, connection: Connection, source: bytes, new: bytes) -> None: ...
    def delete(self, connection: Connection, stream: bytes) -> None: ...


class Counter:
    """``reference_counter`` and ``ancestor_stream_id`` in the segments, no index on the latter."""

    def make(self, connection: Connection) -> None:
        connection.execute(
            "CREATE TABLE segments (stream BLOB, position INT, pieces BLOB, counter INT,"
            " ancestor BLOB, PRIMARY KEY (stream, position)) WITHOUT ROWID"
        )

    def upload(self, connection: Connection, stream: bytes) -> None:
        rows = [(stream, number, PIECES) for number in range(SEGMENTS)]
        connection.executemany("INSERT INTO segments VALUES (?, ?, ?, 0, NULL)", rows)

    def copy(self, connection: Connection, source: bytes, new: bytes) -> None:
        connection.execute(
            "INSERT INTO segments SELECT ?, position, NULL, 0, coalesce(ancestor, stream)"
            " FROM segments WHERE stream = ?",
            (new, source),
        )
        connection.execute("UPDATE segments SET counter = counter + 1 WHERE stream = ?", (source,))

    def delete(self, connection: Connection, stream: bytes) -> None:
        query = "SELECT counter FROM segments WHERE stream = ? LIMIT 1"
        (counter,) = connection.execute(query, (stream,)).fetchone()
        if counter:
            find = "SELECT stream FROM segments WHERE ancestor = ? LIMIT 1"
            (heir,) = connection.execute(find, (stream,)).fetchone()
            _inherit(connection, stream, heir, "counter = o.counter - 1, ancestor = NULL")
            connection.execute(
                "UPDATE segments SET ancestor = ? WHERE ancestor = ?", (heir, stream)
            )
        connection.execute("DELETE FROM segments WHERE stream = ?", (stream,))


class List:
    """A list of the copies in the segments of the original, and the ancestor in the copies'."""

    def make(self, connection: Connection) -> None:
        connection.execute(
            "CREATE TABLE segments (stream BLOB, position INT, pieces BLOB, copies BLOB,"
            " ancestor BLOB, PRIMARY KEY (stream, position)) WITHOUT ROWID"
        )

    def upload(self, connection: Connection, stream: bytes) -> None:
        rows = [(stream, number, PIECES) for number in range(SEGMENTS)]
        connection.executemany("INSERT INTO segments VALUES (?, ?, ?, x'', NULL)", rows)

    def copy(self, connection: Connection, source: bytes, new: bytes) -> None:
        connection.execute(
            "INSERT INTO segments SELECT ?, position, NULL, x'', coalesce(ancestor, stream)"
            " FROM segments WHERE stream = ?",
            (new, source),
        )
        connection.execute(
            "UPDATE segments SET copies = CAST(copies || ? AS BLOB) WHERE stream = ?", (new, source)
        )

    def delete(self, connection: Connection, stream: bytes) -> None:
        query = "SELECT copies FROM segments WHERE stream = ? LIMIT 1"
        (copies,) = connection.execute(query, (stream,)).fetchone()
        if copies:
            heir, *rest = [copies[at : at + 16] for at in range(0, len(copies), 16)]
            _inherit(connection, stream, heir, "copies = substr(o.copies, 17), ancestor = NULL")
            changes = [(heir, each) for each in rest]
            connection.executemany("UPDATE segments SET ancestor = ? WHERE stream = ?", changes)
        connection.execute("DELETE FROM segments WHERE stream = ?", (stream,))


class Table:
    """``segment_copies`` with an index on the ancestor; the segments know nothing of it."""

    def make(self, connection: Connection) -> None:
        connection.execute(
            "CREATE TABLE segments (stream BLOB, position INT, pieces BLOB,"
            " PRIMARY KEY (stream, position)) WITHOUT ROWID"
        )
        connection.execute(
            "CREATE TABLE copies (stream BLOB PRIMARY KEY, ancestor BLOB) WITHOUT ROWID"
        )
        connection.execute("CREATE INDEX copies_by_ancestor ON copies (ancestor)")

    def upload(self, connection: Connection, stream: bytes) -> None:
        rows = [(stream, number, PIECES) for number in range(SEGMENTS)]
        connection.executemany("INSERT INTO segments VALUES (?, ?, ?)", rows)

    def copy(self, connection: Connection, source: bytes, new: bytes) -> None:
        connection.execute(
            "INSERT INTO segments SELECT ?, position, NULL FROM segments WHERE stream = ?",
            (new, source),
        )
        connection.execute("INSERT INTO copies VALUES (?, ?)", (new, source))

    def delete(self, connection: Connection, stream: bytes) -> None:
        find = "SELECT stream FROM copies WHERE ancestor = ? ORDER BY stream LIMIT 1"
        found = connection.execute(find, (stream,)).fetchone()
        if found:
            _inherit(connection, stream, found[0], "stream = s.stream")
            connection.execute("DELETE FROM copies WHERE stream = ?", found)
            change = (found[0], stream)
            connection.execute("UPDATE copies SET ancestor = ? WHERE ancestor = ?", change)
        connection.execute("DELETE FROM segments WHERE stream = ?", (stream,))


def _inherit(connection: Connection, stream: bytes, heir: bytes, also: str) -> None:
    connection.execute(
        f"UPDATE segments AS s SET pieces = o.pieces, {also} FROM segments AS o"
        " WHERE s.stream = ? AND o.stream = ? AND o.position = s.position",
        (heir, stream),
    )


DESIGNS: dict[str, Callable[[], Design]] = {"counter": Counter, "list": List, "table": Table}


def measured(connection: Connection, design: Design, beside: int, turns: int) -> dict[str, float]:
    """Seconds of each step, over ``turns`` objects with ``beside`` others in the table."""
    design.make(connection)
    connection.execute("BEGIN")
    for _ in range(beside):
        design.upload(connection, os.urandom(16))
    names = [(os.urandom(16), os.urandom(16)) for _ in range(turns)]
    alone = [os.urandom(16) for _ in range(turns)]
    for stream in (*alone, *(old for old, _ in names)):
        design.upload(connection, stream)
    connection.execute("COMMIT")
    connection.execute("ANALYZE")

    def each(step: Callable[[int], None]) -> float:
        def all_of_them() -> None:
            connection.execute("BEGIN")
            for number in range(turns):
                step(number)
            connection.execute("COMMIT")

        return seconds(all_of_them)

    taken = {
        "copy": each(lambda n: design.copy(connection, *names[n])),
        "delete of a copied original": each(lambda n: design.delete(connection, names[n][0])),
        "delete without copies": each(lambda n: design.delete(connection, alone[n])),
    }
    return {"copy then delete": taken["copy"] + taken["delete of a copied original"], **taken}


def run(scale: float = 1.0) -> list[Row]:
    """Each step of each design against the table's, on both databases."""
    return [row for database in DATABASES for row in compare(database, scale)]


def compare(database: str, scale: float) -> list[Row]:
    """Each step of each design against the table's."""
    beside, turns = max(int(5_000 * scale), 100), max(int(50 * scale), 5)
    times = {}
    for name, make in DESIGNS.items():
        with DATABASES[database]() as connection:
            times[name] = measured(connection, make(), beside, turns)
    return [
        Row(
            f"{step}: {name}, {database}",
            f"{times['table'][step] / turns * 1e6:.0f} µs",
            f"{name} {taken[step] / turns * 1e6:.0f} µs",
            times["table"][step] / taken[step],
            "the table, for the usual case",
            step != "copy then delete" or times["table"][step] <= 1.5 * taken[step],
        )
        for name, taken in times.items()
        if name != "table"
        for step in taken
    ]


def main() -> None:
    """Print the table."""
    show("Three designs of references", run(asked_scale()))


if __name__ == "__main__":
    main()
