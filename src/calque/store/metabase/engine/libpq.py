"""One statement and its answer in one trip to PostgreSQL, through libpq itself.

The driver's cursors serve every type and every way of executing; for the few types that a
metabase has they cost a small copy a tenth of its time (``docs/benchmarks.md``). Here a
statement is prepared once a connection, and parameters and rows go as the server stores them.
The wait is Python's own, so Ctrl-C ends it.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

_BINARY = 1
_BOOLEAN, _BYTES, _BIGINT, _TEXT = 16, 17, 20, 25
_NUMBERS = (_BIGINT, 21, 23)
_WORDS = (_TEXT, 1043)

_GLANCE_MS = 500
"""A signal that another thread took ends no wait of ours: so now and then we look."""

_prepared: WeakKeyDictionary[Any, dict[tuple[str, tuple[int, ...]], bytes]] = WeakKeyDictionary()


def one_trip(connection: Any, text: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Execute on a connection without an open transaction; gives every row.

    An answer that was not waited for would be taken for the next one's, so whoever is
    interrupted leaves a closed connection behind.
    """
    kinds, encoded = _encoded(values)
    libpq = connection.pgconn
    try:
        known = _prepared.setdefault(connection, {})
        name = known.get((text, kinds))
        if name is None:
            name = b"trip_%d" % len(known)
            libpq.send_prepare(name, text.encode(), param_types=kinds)
            _answer(libpq)
            known[text, kinds] = name
        libpq.send_query_prepared(name, encoded, [_BINARY] * len(encoded), _BINARY)
        answer = _answer(libpq)
    except Exception:
        raise
    except BaseException:
        connection.close()
        raise
    return _rows(answer)


def roll_back(connection: Any) -> None:
    """End an open transaction; the driver's own way would forget every prepared statement."""
    from psycopg import pq

    libpq = connection.pgconn
    if libpq.transaction_status != pq.TransactionStatus.IDLE:
        libpq.send_query(b"ROLLBACK")
        _answer(libpq)


def _encoded(values: Sequence[Any]) -> tuple[tuple[int, ...], list[bytes | None]]:
    kinds, encoded = [], []
    for value in values:
        kind, written = _ENCODERS[type(value)](value)
        kinds.append(kind)
        encoded.append(written)
    return tuple(kinds), encoded


_ENCODERS: dict[type, Callable[[Any], tuple[int, bytes | None]]] = {
    bytes: lambda value: (_BYTES, value),
    str: lambda value: (_TEXT, value.encode()),
    int: lambda value: (_BIGINT, value.to_bytes(8, "big", signed=True)),
    bool: lambda value: (_BOOLEAN, b"\1" if value else b"\0"),
    type(None): lambda value: (0, None),
}


def _answer(libpq: Any) -> Any:
    """The result of what was sent; raises what the server refused."""
    from psycopg import errors, pq

    socket = select.poll()
    socket.register(libpq.socket, select.POLLIN | select.POLLOUT)
    while libpq.flush():
        if any(ready & select.POLLIN for _, ready in socket.poll()):
            libpq.consume_input()
    socket.modify(libpq.socket, select.POLLIN)
    results = []
    while True:
        while libpq.is_busy():
            socket.poll(_GLANCE_MS)
            libpq.consume_input()
        result = libpq.get_result()
        if result is None:
            break
        results.append(result)
    if results[-1].status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
        raise errors.error_from_result(results[-1])
    return results[-1]


def _rows(answer: Any) -> list[tuple[Any, ...]]:
    decoders = [(at, _DECODERS[answer.ftype(at)]) for at in range(answer.nfields)]
    return [
        tuple([decode(answer.get_value(row, at)) for at, decode in decoders])
        for row in range(answer.ntuples)
    ]


def _number(written: bytes | None) -> int | None:
    return None if written is None else int.from_bytes(written, "big", signed=True)


def _word(written: bytes | None) -> str | None:
    return None if written is None else written.decode()


def _truth(written: bytes | None) -> bool | None:
    return None if written is None else written == b"\1"


def _same(written: bytes | None) -> bytes | None:
    return written


_DECODERS: dict[int, Callable[[bytes | None], Any]] = {
    _BOOLEAN: _truth,
    _BYTES: _same,
    **dict.fromkeys(_NUMBERS, _number),
    **dict.fromkeys(_WORDS, _word),
}
