"""Our error kinds on the wire: a gRPC status, and the exact kind beside it."""

from __future__ import annotations

from typing import NoReturn

import grpc

from calque import errors
from calque.errors import CalqueError

KIND_KEY = "calque-error-kind"
RETRY_AFTER_KEY = "calque-retry-after"
HINT_KEY = "calque-hint-bin"
MAX_DETAILS = 500
"""Characters: at most 6,000 bytes as gRPC writes them, of 8,192 that a client surely takes."""

# The status of each kind; a kind that is not here takes that of its nearest parent.
STATUS_OF: dict[type[CalqueError], grpc.StatusCode] = {
    errors.InvalidInput: grpc.StatusCode.INVALID_ARGUMENT,
    errors.NotFound: grpc.StatusCode.NOT_FOUND,
    errors.AlreadyExists: grpc.StatusCode.ALREADY_EXISTS,
    errors.ConditionNotMatch: grpc.StatusCode.FAILED_PRECONDITION,
    errors.PermissionDenied: grpc.StatusCode.PERMISSION_DENIED,
    errors.Unsupported: grpc.StatusCode.UNIMPLEMENTED,
    errors.ResourceExhausted: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.RateLimited: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.IntegrityError: grpc.StatusCode.DATA_LOSS,
    errors.DataError: grpc.StatusCode.INVALID_ARGUMENT,
    errors.Aborted: grpc.StatusCode.ABORTED,
    errors.TimedOut: grpc.StatusCode.DEADLINE_EXCEEDED,
    errors.Unavailable: grpc.StatusCode.UNAVAILABLE,
    errors.Unexpected: grpc.StatusCode.INTERNAL,
    CalqueError: grpc.StatusCode.UNKNOWN,
}

# The kind of each status, when no kind came with it (a proxy, another server).
KIND_OF: dict[grpc.StatusCode, type[CalqueError]] = {
    grpc.StatusCode.CANCELLED: errors.Aborted,
    grpc.StatusCode.UNKNOWN: errors.Unexpected,
    grpc.StatusCode.INVALID_ARGUMENT: errors.InvalidInput,
    grpc.StatusCode.DEADLINE_EXCEEDED: errors.TimedOut,
    grpc.StatusCode.NOT_FOUND: errors.NotFound,
    grpc.StatusCode.ALREADY_EXISTS: errors.AlreadyExists,
    grpc.StatusCode.PERMISSION_DENIED: errors.PermissionDenied,
    grpc.StatusCode.UNAUTHENTICATED: errors.PermissionDenied,
    grpc.StatusCode.RESOURCE_EXHAUSTED: errors.ResourceExhausted,
    grpc.StatusCode.FAILED_PRECONDITION: errors.FailedPrecondition,
    grpc.StatusCode.ABORTED: errors.Aborted,
    grpc.StatusCode.OUT_OF_RANGE: errors.InvalidInput,
    grpc.StatusCode.UNIMPLEMENTED: errors.Unsupported,
    grpc.StatusCode.INTERNAL: errors.Unexpected,
    grpc.StatusCode.UNAVAILABLE: errors.Unavailable,
    grpc.StatusCode.DATA_LOSS: errors.IntegrityError,
}


def status_of(error: CalqueError) -> grpc.StatusCode:
    """The status that carries ``error``."""
    for kind in type(error).__mro__:
        if kind in STATUS_OF:
            return STATUS_OF[kind]
    return grpc.StatusCode.UNKNOWN


def trailers_of(error: CalqueError) -> list[tuple[str, str | bytes]]:
    """What a status cannot say: the exact kind, the hint, how long to wait."""
    trailers: list[tuple[str, str | bytes]] = [(KIND_KEY, type(error).__name__)]
    if error.hint:
        trailers.append((HINT_KEY, error.hint.encode()))
    if error.retry_after is not None:
        trailers.append((RETRY_AFTER_KEY, f"{error.retry_after:.6f}"))
    return trailers


def abort_with(context: grpc.ServicerContext, error: CalqueError) -> NoReturn:
    """End a call with ``error``.

    Names out of the request stand in messages, and a status that is too long is lost whole.
    """
    context.set_trailing_metadata(tuple(trailers_of(error)))
    details = error.message
    if len(details) > MAX_DETAILS:
        details = details[:MAX_DETAILS] + "…"
    context.abort(status_of(error), details)
    raise AssertionError("abort does not return") from error


def error_of(failure: grpc.RpcError) -> CalqueError:
    """The error behind a failed call."""
    code = failure.code() if hasattr(failure, "code") else grpc.StatusCode.UNKNOWN
    message = (failure.details() if hasattr(failure, "details") else None) or str(code)
    raw = failure.trailing_metadata() if hasattr(failure, "trailing_metadata") else None
    trailers: dict[str, str | bytes] = {each.key: each.value for each in raw or ()}
    kind = kind_named(str(trailers.get(KIND_KEY, ""))) or KIND_OF.get(code, errors.Unexpected)
    hint = trailers.get(HINT_KEY)
    wait = trailers.get(RETRY_AFTER_KEY)
    return kind(
        message,
        hint=hint.decode(errors="replace") if isinstance(hint, bytes) else None,
        retry_after=_seconds(wait),
    )


def kind_named(name: str) -> type[CalqueError] | None:
    """The class of our errors with this name."""
    kind = getattr(errors, name, None)
    return kind if isinstance(kind, type) and issubclass(kind, CalqueError) else None


def _seconds(text: object) -> float | None:
    try:
        return float(text) if isinstance(text, str) else None
    except ValueError:
        return None
