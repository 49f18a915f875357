"""Conditional requests: told apart from a lost race when they meet their own work, and refused.

A conditional request whose answer was lost is repeated by the retry layer, finds the object that it
made itself, and the service answers that the condition is false. Each such request therefore leaves
a mark of its own on what it makes (see ``marker`` in each service), by which it is known again.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import TypeVar

from calque.errors import CalqueError, ConditionNotMatch, NotFound
from calque.operator.layers.chain import Call, Chain
from calque.values import Metadata

T = TypeVar("T")


def new_mark() -> str:
    """A mark that no other request has."""
    return secrets.token_hex(12)


def send_marked(
    chain: Chain,
    verb: str,
    path: str,
    request: Callable[[Call], T],
    find_made: Callable[[], Metadata | None],
    *,
    failures: tuple[type[Exception], ...] = (ConditionNotMatch,),
    repeated: bool = False,
    slow: bool = False,
) -> T | Metadata:
    """The answer to a request; or, where a repeat of it was refused, what the first one made.

    ``find_made`` looks for an object that bears the request's mark. It is asked only after a
    repeat, or where an earlier process may have sent the request (``repeated``): the first refusal
    of a new request cannot come from its own work.
    """
    attempts = 0

    def count(call: Call) -> T:
        nonlocal attempts
        attempts += 1
        return request(call)

    try:
        return chain.send(verb, path, count, slow=slow)
    except failures:
        made = find_made() if attempts > 1 or repeated else None
        if made is None:
            raise
        return made


def condition_error(location: str, *, if_not_exists: bool) -> ConditionNotMatch:
    """The error for a condition on a target that was false."""
    if if_not_exists:
        return ConditionNotMatch(f"{location} exists already", hint="It was left as it is.")
    return ConditionNotMatch(
        f"{location} is not the object that if_match names",
        hint="It was created, replaced or deleted since; nothing was changed.",
    )


def source_error(location: str, *, deleted: bool) -> CalqueError:
    """The error for a source that is not the one any more which was looked at."""
    if deleted:
        return NotFound(f"the source {location} was deleted before it was copied")
    return ConditionNotMatch(
        f"the source {location} was replaced before it was copied",
        hint="Copy again to get the new object; the target is untouched.",
    )
