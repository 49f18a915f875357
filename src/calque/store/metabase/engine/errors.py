"""What a database's errors are to the metabase's callers, and which of them are retried.

Which kind of error a code is, ``calque.databases.errors`` says; the words are said here. They hold
no value of a statement: the metabase is the satellite's, its callers are not.
"""

from __future__ import annotations

import sqlite3
from typing import Literal, overload

from calque.databases.errors import DISK_FULL, code_of, is_conflict, is_one_of, kind_of
from calque.errors import CalqueError, Unexpected

FULL = "The disk of the metabase is full: make room there, and try again. Nothing was changed."


class Disturbed(Exception):
    """Another transaction came in between; the same work may pass if tried again."""


def disturbance_of(error: BaseException) -> Disturbed | None:
    """The retry signal behind ``error``, when it is one."""
    if isinstance(error, Disturbed):
        return error
    if not is_conflict(error):
        return None
    sqlite = isinstance(error, sqlite3.Error)
    return Disturbed(str(error) if sqlite else f"SQLSTATE {code_of(error)}")


def meaning_of(error: Exception) -> Exception:
    """What an error inside a transaction is to its caller; one of ours stays as it is."""
    found = disturbance_of(error) or database_error(error, only_foreign=True)
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
    kind = kind_of(error)
    if kind is None:
        if only_foreign:
            return None
        return Unexpected(f"the metabase cannot be reached ({type(error).__name__})")
    code = code_of(error)
    hint = FULL if is_one_of(error, DISK_FULL) else None
    if isinstance(code, int):
        return kind(f"SQLite refused: {getattr(error, 'orig', error)}", hint=hint)
    if code is not None:
        return kind(f"PostgreSQL refused with SQLSTATE {code}", hint=hint)
    return kind(f"the metabase does not answer ({type(error).__name__})")
