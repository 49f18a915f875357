"""Errors of the table libraries, mapped through one table each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from calque.databases.errors import kind_of
from calque.errors import (
    AlreadyExists,
    CalqueError,
    ConditionNotMatch,
    DataError,
    InvalidInput,
    MissingExtra,
    NotFound,
    PermissionDenied,
    RateLimited,
    ResourceExhausted,
    Unavailable,
    Unexpected,
    Unsupported,
    is_panic,
)
from calque.operator.services.fs import errors as fs

DELTA: Mapping[str, type[CalqueError]] = {
    "TableNotFoundError": NotFound,
    "CommitFailedError": ConditionNotMatch,
    "DeltaProtocolError": Unsupported,
    "SchemaMismatchError": DataError,
    "DeltaError": Unexpected,
}

ICEBERG: Mapping[str, type[CalqueError]] = {
    "CommitFailedException": ConditionNotMatch,
    "ConditionalCheckFailedException": ConditionNotMatch,
    "WaitingForLockException": ConditionNotMatch,
    "ValidationException": ConditionNotMatch,
    "CommitStateUnknownException": Unavailable,
    "ServerError": Unavailable,
    "ServiceUnavailableError": Unavailable,
    "TooManyRequestsError": RateLimited,
    "AuthorizationExpiredError": PermissionDenied,
    "ForbiddenError": PermissionDenied,
    "UnauthorizedError": PermissionDenied,
    "OAuthError": PermissionDenied,
    "SignError": PermissionDenied,
    "NoSuchTableError": NotFound,
    "NoSuchViewError": NotFound,
    "NoSuchIcebergTableError": NotFound,
    "NoSuchIdentifierError": NotFound,
    "NoSuchNamespaceError": NotFound,
    "NoSuchPlanTaskError": NotFound,
    "NoSuchPropertyException": NotFound,
    "TableAlreadyExistsError": AlreadyExists,
    "ViewAlreadyExistsError": AlreadyExists,
    "NamespaceAlreadyExistsError": AlreadyExists,
    "NamespaceNotEmptyError": ConditionNotMatch,
    "BadRequestError": InvalidInput,
    "ResolveError": DataError,
    "UnsupportedPyArrowTypeException": Unsupported,
    "ValidationError": InvalidInput,
    "NotInstalledError": MissingExtra,
    "DynamoDbError": Unavailable,
    "GenericDynamoDbError": Unavailable,
    "RESTError": Unavailable,
}

_NO_RIGHTS = ("lacked the necessary privileges", "lacked valid authentication credentials")
"""How deltalake spells what object stores answer to who may not do it."""

_ERRNO = re.compile(r"\(os error (\d+)\)")
_ARROW = re.compile(r"^\s*(?:\x1b\[\d+m)?↳(?:\x1b\[\d+m)?\s*")


@contextmanager
def map_errors(names: Mapping[str, type[CalqueError]], table: str) -> Iterator[None]:
    """Raise our error for the library's, with the table's name before its message."""
    try:
        yield
    except CalqueError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        raise map_error(error, names, table) from error


def map_error(
    error: BaseException, names: Mapping[str, type[CalqueError]], table: str
) -> CalqueError:
    """Our error for one of the library's; the nearest class by name counts."""
    reason = _reason_of(error)
    for kind in type(error).__mro__:
        if kind.__name__ in names:
            return names[kind.__name__](f"table {table}: {reason}")
    if isinstance(error, OSError):
        return _map_os_error(error, f"table {table}: {reason}")
    stored = kind_of(error)  # of the database that a catalog is kept in
    if stored and issubclass(stored, PermissionDenied | ResourceExhausted | Unavailable):
        return stored(f"table {table}: its catalog: {reason}")
    return Unexpected(f"table {table}: {type(error).__name__}: {reason}")


def _reason_of(error: BaseException) -> str:
    """The first line of what it says; of a file also those behind, which tell what was wrong.

    Of an object store these would tell addresses, and keys that are in them.
    """
    lines = str(error).strip().splitlines() or [type(error).__name__]
    if "LocalFileSystem" not in lines[0]:
        return lines[0]
    return ": ".join([lines[0], *(_ARROW.sub("", one) for one in lines[1:] if _ARROW.match(one))])


def _map_os_error(error: OSError, told: str) -> CalqueError:
    """What may not be done, or finds no room, is told at once; all else may pass by itself."""
    number = _ERRNO.search(told)
    meaning = fs.TABLE.get(int(number[1]) if number else error.errno or 0)
    if meaning is not None and issubclass(meaning.kind, PermissionDenied | ResourceExhausted):
        return meaning.kind(told, hint=meaning.hint)
    if isinstance(error, PermissionError) or any(words in told for words in _NO_RIGHTS):
        return PermissionDenied(told)
    return Unavailable(told)
