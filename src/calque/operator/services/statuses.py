"""What an HTTP status means where a service gives no reason of its own."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from calque.errors import (
    CalqueError,
    ConditionNotMatch,
    InvalidInput,
    NotFound,
    PermissionDenied,
    RateLimited,
    TimedOut,
    Unavailable,
    Unexpected,
    Unsupported,
)

Kind = type[CalqueError]

STATUSES: Mapping[int, Kind] = MappingProxyType(
    {
        304: ConditionNotMatch,
        400: InvalidInput,
        401: PermissionDenied,
        403: PermissionDenied,
        404: NotFound,
        405: Unsupported,
        408: TimedOut,
        411: InvalidInput,
        412: ConditionNotMatch,
        413: InvalidInput,  # this object is too large; others have room
        416: InvalidInput,
        429: RateLimited,
        500: Unavailable,
        501: Unsupported,
        502: Unavailable,
        503: Unavailable,
        504: TimedOut,
    }
)


def kind_of(status: int, known: Mapping[int, Kind]) -> Kind:
    """The error of a status by a service's own table; an unknown 5xx may pass, others do not."""
    return known.get(status) or (Unavailable if status >= 500 else Unexpected)
