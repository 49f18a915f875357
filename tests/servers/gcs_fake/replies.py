"""Answers and errors, worded as the service words them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, its path still encoded."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    complete: bool = True
    """False when the connection ended before the promised length."""

    def json(self) -> dict[str, Any]:
        """The body as a JSON object; an empty body is an empty object."""
        if not self.body.strip():
            return {}
        try:
            parsed = json.loads(self.body)
        except ValueError as error:
            raise ApiError(400, "parseError", "Parse Error") from error
        if not isinstance(parsed, dict):
            raise ApiError(400, "parseError", "Parse Error")
        return parsed


@dataclass(frozen=True, slots=True)
class Reply:
    """One HTTP answer."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of_json(cls, status: int, document: Any, **headers: str) -> Reply:
        encoded = json.dumps(document, ensure_ascii=False).encode()
        return cls(
            status,
            encoded,
            {"Content-Type": "application/json; charset=UTF-8", **headers},
        )


class ApiError(Exception):
    """A refusal with the status, reason and message that the service sends."""

    def __init__(self, status: int, reason: str, message: str, location: str = "") -> None:
        super().__init__(message)
        self.status, self.reason, self.message, self.location = status, reason, message, location

    def reply(self, media: bool) -> Reply:
        """As JSON, or as plain text where the caller asked for bytes (the service does so)."""
        if self.status == 304:
            return Reply(304)
        if media:
            return Reply(
                self.status, self.message.encode(), {"Content-Type": "text/html; charset=UTF-8"}
            )
        detail: dict[str, str] = {
            "message": self.message,
            "domain": "global",
            "reason": self.reason,
        }
        if self.location:
            detail |= {"locationType": "parameter", "location": self.location}
        document = {
            "error": {"code": self.status, "message": self.message, "errors": [detail]},
        }
        return Reply.of_json(self.status, document)


def invalid(message: str, location: str = "") -> ApiError:
    return ApiError(400, "invalid", message, location)


def number(query: dict[str, str], name: str) -> int | None:
    """A parameter that must be a whole number; None when it is not sent."""
    if name not in query:
        return None
    try:
        return int(query[name])
    except ValueError as error:
        raise ApiError(
            400, "invalidParameter", f"Invalid value at '{name}': '{query[name]}'", name
        ) from error
