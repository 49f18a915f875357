"""One statement and its answer in one trip to PostgreSQL, through libpq itself.

The driver's cursors serve every way of executing, which costs a small copy a tenth of its time
(``docs/benchmarks.md``). Here a statement is prepared once a connection, and the driver's own
encoder and decoder turn values and rows into what the server stores and back. The wait is
Python's own, so Ctrl-C ends it.
"""

from __future__ import annotations

import select
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

_BINARY = 1

_GLANCE_MS = 500
"""Python runs signal handlers in the main thread only, and a signal that another thread took
does not end a wait there: so each wait is short, and is begun again."""

PLANS_LAST = 5.0
"""Seconds. To plan all that a connection has prepared anew takes it a few milliseconds."""


class _Encoder:
    """What one connection keeps: the driver's encoder, and the statements prepared on it."""

    def __init__(self) -> None:
        from psycopg import adapters
        from psycopg.adapt import AdaptersMap, Transformer
        from psycopg.types.numeric import Int8BinaryDumper

        # The driver gives an integer the smallest type that holds it, and a statement is prepared
        # for its types: with one type for all of them it is prepared once and not per size.
        self.adapters = AdaptersMap(adapters)
        self.adapters.register_dumper(int, Int8BinaryDumper)
        # No reference to the connection: it is the weak key under which this is kept.
        self.connection = None
        self.transformer = Transformer(self)
        self.prepared: dict[tuple[str, tuple[int, ...]], bytes] = {}
        self.planned_at = time.monotonic()


_encoders: WeakKeyDictionary[Any, _Encoder] = WeakKeyDictionary()


def execute_prepared(connection: Any, text: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Execute on a connection without an open transaction; gives every row."""
    from psycopg.adapt import PyFormat

    encoder = _encoder_of(connection)
    encoded = encoder.transformer.dump_sequence(values, [PyFormat.BINARY] * len(values))
    kinds = tuple(encoder.transformer.types or ())
    libpq = connection.pgconn
    with _closed_if_interrupted(connection):
        name = encoder.prepared.get((text, kinds))
        if name is None:
            name = b"calque_%d" % len(encoder.prepared)
            libpq.send_prepare(name, text.encode(), param_types=kinds)
            _answer(libpq)
            encoder.prepared[text, kinds] = name
        libpq.send_query_prepared(name, encoded, [_BINARY] * len(encoded), _BINARY)
        answer = _answer(libpq)
    encoder.transformer.set_pgresult(answer)
    return encoder.transformer.load_rows(0, answer.ntuples, tuple)


@contextmanager
def _closed_if_interrupted(connection: Any) -> Iterator[None]:
    """An answer that was not waited for would be taken for the next one's: so whoever is
    interrupted leaves a closed connection behind."""
    try:
        yield
    except Exception:
        raise
    except BaseException:
        connection.close()
        raise


def _encoder_of(connection: Any) -> _Encoder:
    encoder = _encoders.get(connection)
    if encoder is None:
        encoder = _encoders[connection] = _Encoder()
    return encoder


def renew_plans(connection: Any) -> None:
    """Have statements that were planned some seconds ago planned anew, outside a transaction.

    For a table that the server knows to be empty every index is as good to it, also one in which
    the statement's key is not found. It keeps such a plan until it looks at the table again: for a
    minute at best, while thousands of objects come, and each call goes through all of them.
    """
    encoder, now = _encoder_of(connection), time.monotonic()
    if now - encoder.planned_at >= PLANS_LAST:
        with _closed_if_interrupted(connection):
            connection.pgconn.send_query(b"DISCARD PLANS")
            _answer(connection.pgconn)
        encoder.planned_at = now


def roll_back(connection: Any) -> None:
    """End an open transaction; the driver's own way would forget every prepared statement."""
    from psycopg import pq

    libpq = connection.pgconn
    if libpq.transaction_status != pq.TransactionStatus.IDLE:
        libpq.send_query(b"ROLLBACK")
        _answer(libpq)


def _answer(libpq: Any) -> Any:
    """The result of what was sent; raises what the server refused."""
    from psycopg import errors, pq

    socket = select.poll()
    socket.register(libpq.socket, select.POLLIN | select.POLLOUT)
    # A large statement may fill the socket while the server waits for us to read its notices:
    # so what comes is read, also while there is still something to send.
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
