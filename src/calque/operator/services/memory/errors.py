"""The service's own failures, and the errors they become."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from calque.errors import CalqueError, ConditionNotMatch, InvalidInput, NotFound

Code = Literal[
    "NoSuchKey",
    "NoSuchVersion",
    "NoSuchUpload",
    "TargetExists",
    "TargetChanged",
    "SourceChanged",
    "InvalidPart",
]

ERRORS: Mapping[Code, type[CalqueError]] = MappingProxyType(
    {
        "NoSuchKey": NotFound,
        "NoSuchVersion": NotFound,
        "NoSuchUpload": NotFound,
        "TargetExists": ConditionNotMatch,
        "TargetChanged": ConditionNotMatch,
        "SourceChanged": ConditionNotMatch,
        "InvalidPart": InvalidInput,
    }
)


class Refused(Exception):
    """The store refuses a request, by one of its codes."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code: Code = code


def error_of(refused: Refused, location: str) -> CalqueError:
    """The error that a refusal becomes."""
    return ERRORS[refused.code](f"{location}: {refused}")
