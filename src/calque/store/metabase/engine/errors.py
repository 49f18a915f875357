"""What a database's errors mean to us: one table, and which of them are retried."""

from __future__ import annotations

import sqlite3
from typing import Any, Literal, overload

from calque.errors import (
    CalqueError,
    IntegrityError,
    PermissionDenied,
    ResourceExhausted,
    Unavailable,
    Unexpected,
)

# Primary result codes of SQLite (extended codes carry the primary in their low byte).
SQLITE_RETRY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
SQLITE_KINDS: dict[int, type[CalqueError]] = {
    sqlite3.SQLITE_FULL: ResourceExhausted,
    sqlite3.SQLITE_NOMEM: ResourceExhausted,
    sqlite3.SQLITE_TOOBIG: ResourceExhausted,
    sqlite3.SQLITE_CORRUPT: IntegrityError,
    sqlite3.SQLITE_NOTADB: IntegrityError,
    sqlite3.SQLITE_PERM: PermissionDenied,
    sqlite3.SQLITE_READONLY: PermissionDenied,
    sqlite3.SQLITE_AUTH: PermissionDenied,
    sqlite3.SQLITE_BUSY: Unavailable,
    sqlite3.SQLITE_LOCKED: Unavailable,
    sqlite3.SQLITE_CANTOPEN: Unavailable,
    sqlite3.SQLITE_IOERR: Unavailable,
    sqlite3.SQLITE_PROTOCOL: Unavailable,
    sqlite3.SQLITE_INTERRUPT: Unavailable,
}

# SQLSTATE of PostgreSQL: serialization failure, deadlock, unique violation.
POSTGRES_RETRY = frozenset({"40001", "40P01", "23505"})
# By class, the first two characters of the SQLSTATE.
POSTGRES_KINDS: dict[str, type[CalqueError]] = {
    "08": Unavailable,  # connection
    "25": Unavailable,  # read-only standby
    "28": PermissionDenied,  # authorization
    "42": Unexpected,  # a statement the server does not know: schema too old or too new
    "53": ResourceExhausted,  # disk full, out of memory, too many connections
    "54": ResourceExhausted,  # program limit
    "55": Unavailable,  # object not in the state needed
    "57": Unavailable,  # operator intervention: shutting down
    "58": Unavailable,  # system error
    "XX": IntegrityError,  # data corrupted
}


POSTGRES_FULL = "53100"
DISK_FULL = "The disk of the metabase is full: make room there, and try again. Nothing was changed."


class Disturbed(Exception):
    """Another transaction came in between; the same work may pass if tried again."""


def disturbed(error: BaseException) -> Disturbed | None:
    """The retry signal behind ``error``, when it is one."""
    if isinstance(error, Disturbed):
        return error
    if isinstance(error, sqlite3.Error):
        return Disturbed(str(error)) if _sqlite_code(error) in SQLITE_RETRY else None
    state = _sqlstate(error)
    return Disturbed(f"SQLSTATE {state}") if state in POSTGRES_RETRY else None


def is_forbidden(error: BaseException) -> bool:
    """Whether PostgreSQL says that this user may not do that."""
    return _sqlstate(error) == "42501"


def is_cut(error: BaseException, connection: Any) -> bool:
    """Whether the connection to PostgreSQL is gone: by itself, or since its server stops."""
    state = _sqlstate(error) or ""
    return state.startswith(("08", "57P0")) or bool(getattr(connection, "closed", False))


def meaning(error: Exception) -> Exception:
    """What an error inside a transaction is to its caller; one of ours stays as it is."""
    found = disturbed(error) or database_error(error, only_foreign=True)
    if found is None or found is error:
        return error
    found.__cause__ = error
    return found


@overload
def database_error(error: BaseException) -> CalqueError: ...
@overload
def database_error(error: BaseException, *, only_foreign: Literal[True]) -> CalqueError | None: ...


def database_error(error: BaseException, *, only_foreign: bool = False) -> CalqueError | None:
    """Our error for one of a database; with ``only_foreign``, ``None`` for anything else."""
    if isinstance(error, sqlite3.Error):
        code = _sqlite_code(error)
        kind = SQLITE_KINDS.get(code, Unexpected)
        return kind(
            f"SQLite refused: {error}", hint=DISK_FULL if code == sqlite3.SQLITE_FULL else None
        )
    state = _sqlstate(error)
    if state is not None:
        kind = POSTGRES_KINDS.get(state[:2], Unexpected)
        hint = DISK_FULL if state == POSTGRES_FULL else None
        return kind(f"PostgreSQL refused with SQLSTATE {state}", hint=hint)
    if type(error).__module__.startswith(("psycopg", "sqlalchemy")):
        return Unavailable(f"the metabase does not answer ({type(error).__name__})")
    if only_foreign:
        return None
    return Unexpected(f"the metabase cannot be reached ({type(error).__name__})")


def _sqlite_code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)) & 0xFF


def _sqlstate(error: Any) -> str | None:
    state = getattr(error, "sqlstate", None)
    return state if isinstance(state, str) else None
