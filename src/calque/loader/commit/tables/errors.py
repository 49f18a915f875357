"""Errors of the table libraries, mapped through one table each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

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
    Unavailable,
    Unexpected,
    Unsupported,
    is_panic,
)

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
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    for kind in type(error).__mro__:
        if kind.__name__ in names:
            return names[kind.__name__](f"table {table}: {reason}")
    if isinstance(error, PermissionError):
        return PermissionDenied(f"table {table}: {reason}")
    if isinstance(error, OSError):
        return Unavailable(f"table {table}: {reason}")
    return Unexpected(f"table {table}: {type(error).__name__}: {reason}")
