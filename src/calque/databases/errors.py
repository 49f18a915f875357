"""What a database's errors are to us: one table by code, and what may be tried again.

The words are the caller's: a message says which database, and what to do there.
"""

from __future__ import annotations

import sqlite3

from sqlalchemy import exc

from calque.errors import (
    AlreadyExists,
    CalqueError,
    IntegrityError,
    PermissionDenied,
    ResourceExhausted,
    Unavailable,
    Unexpected,
)

Code = int | str
"""A result code of SQLite, or an SQLSTATE of PostgreSQL."""

KINDS: dict[Code, type[CalqueError]] = {
    # SQLite: an extended code, or the primary one in its low byte.
    sqlite3.SQLITE_CONSTRAINT_UNIQUE: AlreadyExists,
    sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY: AlreadyExists,
    sqlite3.SQLITE_FULL: ResourceExhausted,
    sqlite3.SQLITE_IOERR_SHMSIZE: ResourceExhausted,  # no room for the index of its log
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
    # PostgreSQL: a whole SQLSTATE, or its class, the first two characters.
    "23505": AlreadyExists,  # unique violation
    "42501": PermissionDenied,  # insufficient privilege
    "08": Unavailable,  # connection
    "25": Unavailable,  # read-only standby, a transaction that was idle for too long
    "28": PermissionDenied,  # authorization
    "40": Unavailable,  # serialization failure, deadlock
    "42": Unexpected,  # a statement the server does not know: schema too old or too new
    "53": ResourceExhausted,  # disk full, out of memory, too many connections
    "54": ResourceExhausted,  # program limit
    "55": Unavailable,  # object not in the state needed, a lock that was waited for too long
    "57": Unavailable,  # operator intervention: shutting down
    "58": Unavailable,  # system error
    "XX": IntegrityError,  # data corrupted
}
"""The first that fits counts: the whole code, then its family. Any other code is Unexpected."""

CONFLICTS: frozenset[Code] = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        "40001",  # serialization failure
        "40P01",  # deadlock
        "23505",  # unique violation: another inserted the row first
    }
)
"""Another transaction came in between: the same work may pass if it is tried again."""

WRONG_FILE: frozenset[Code] = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOTADB})
DISK_FULL: frozenset[Code] = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE, "53100"})

_OUR_MISTAKES = ("ProgrammingError", "DataError", "NotSupportedError")
_NO_ANSWER = (exc.OperationalError, exc.InterfaceError, exc.TimeoutError, exc.DisconnectionError)


def code_of(error: BaseException) -> Code | None:
    """The code that came with an error, or with the driver's error inside SQLAlchemy's."""
    error = getattr(error, "orig", None) or error
    if isinstance(error, sqlite3.Error):
        return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR))
    state = getattr(error, "sqlstate", None)
    return state if isinstance(state, str) else None


def kind_of(error: BaseException) -> type[CalqueError] | None:
    """Which of our errors it is; None for what came from no database."""
    code = code_of(error)
    if code is not None:
        return KINDS.get(code) or KINDS.get(_family(code)) or Unexpected
    if isinstance(error, exc.SQLAlchemyError):
        return _kind_of_wrapper(error)
    # Neither a connection that cannot be made nor one that breaks has a code.
    if not type(error).__module__.startswith("psycopg"):
        return None
    mistaken = any(kind.__name__ in _OUR_MISTAKES for kind in type(error).__mro__)
    return Unexpected if mistaken else Unavailable


def _kind_of_wrapper(error: exc.SQLAlchemyError) -> type[CalqueError]:
    if isinstance(error, exc.DBAPIError):
        if error.connection_invalidated:
            return Unavailable
        inner = kind_of(error.orig) if error.orig else None
        if inner is not None:
            return inner
    return Unavailable if isinstance(error, _NO_ANSWER) else Unexpected


def is_one_of(error: BaseException, codes: frozenset[Code]) -> bool:
    """Whether its code, or the family of it, is one of these."""
    code = code_of(error)
    return code is not None and (code in codes or _family(code) in codes)


def is_conflict(error: BaseException) -> bool:
    """Whether another transaction came in between, so that trying again may help."""
    return is_one_of(error, CONFLICTS)


def is_lock_timeout(error: BaseException) -> bool:
    """Whether PostgreSQL has waited for a lock as long as it was told to."""
    return code_of(error) == "55P03"


def is_forbidden(error: BaseException) -> bool:
    """Whether PostgreSQL says that this user may not do that."""
    return code_of(error) == "42501"


def is_cut(error: BaseException, connection: object) -> bool:
    """Whether the connection to PostgreSQL is gone: by itself, or since its server stops."""
    code = code_of(error)
    if isinstance(code, str) and code.startswith(("08", "57P0")):
        return True
    return bool(getattr(connection, "closed", False))


def _family(code: Code) -> Code:
    return code & 0xFF if isinstance(code, int) else code[:2]
