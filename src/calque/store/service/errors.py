"""What the store's errors are called above it, in the Operator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from calque.errors import AlreadyExists, ConditionNotMatch


@contextmanager
def map_errors(location: str) -> Iterator[None]:
    """The Operator calls a target that must not exist a condition; the store names the fact."""
    try:
        yield
    except AlreadyExists as error:
        raise ConditionNotMatch(
            f"{location} exists already", hint="Nothing was changed: if_not_exists was asked for."
        ) from error


@contextmanager
def name_existing() -> Iterator[None]:
    """The same of a prefix, where the store has named the object that stands in the way."""
    try:
        yield
    except AlreadyExists as error:
        raise ConditionNotMatch(error.message, hint=error.hint) from error
