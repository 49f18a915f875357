"""Values as text: for people in templates, for programs in JSON."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from calque.values import size_text


def make_templates() -> Environment:
    """The templates: everything is escaped, and a name that is missing is an error."""
    environment = Environment(
        loader=PackageLoader("calque.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "size": size_text,
        "number": lambda value: f"{value:,}".replace(",", "\u202f"),
        "when": when,
        "quoted": lambda text: quote(text, safe="", errors="surrogateescape"),
    }
    return environment


def when(value: datetime | None) -> str:
    """A time as people read it; all times are UTC."""
    return "—" if value is None else value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def whole_number(text: str) -> int | None:
    """A number that was typed or sent; None where it is none, or longer than any of ours."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else None


def moment(microseconds: int | None) -> datetime | None:
    """A time of the databases."""
    return None if microseconds is None else datetime.fromtimestamp(microseconds / 1e6, UTC)


def shell_line(*words: str) -> str:
    """A command to copy into a shell. Statements are full of quotes: double ones keep them legible
    where nothing in the word means anything between them."""
    return " ".join(
        f'"{word}"' if "'" in word and not set(word) & set('"$`\\!\n') else shlex.quote(word)
        for word in words
    )


def plain(value: Any) -> Any:
    """What JSON has no word for."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, bytes):
        return os.fsdecode(value)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)
