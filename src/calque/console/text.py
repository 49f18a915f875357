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
from markupsafe import Markup, escape

from calque.values import printable, size_text


class _Environment(Environment):
    """``each.copy`` is what a page says of it, not what every dictionary of Python can do."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, Mapping) and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)


def make_templates() -> Environment:
    """The templates: everything is escaped, what cannot be seen is spelled out, and a name that is
    missing is an error."""
    environment = _Environment(
        loader=PackageLoader("calque.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_seen,
    )
    environment.filters |= {
        "size": size_text,
        "number": lambda value: Markup(number_text(value).replace(" ", "\u202f")),
        "when": when,
        "quoted": lambda text: quote(text, safe="", errors="surrogateescape"),
        "exact": escape,
        "lines": _lines,
    }
    return environment


def _seen(value: Any) -> Any:
    """A name as people may trust it: ``gnp.exe`` behind a mark that turns it around is no picture.
    Fields of forms, which are sent back, are ``exact``; what has lines of its own is ``lines``."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return printable(value)
    return value


def _lines(text: str) -> Markup:
    """Text of more than one line, each as it may be trusted."""
    return Markup("\n").join(printable(line) for line in text.split("\n"))


def number_text(value: int) -> str:
    """A count in groups of three, which no language reads as a fraction."""
    return f"{value:,}".replace(",", " ")


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
    return " ".join(map(_shell_word, words))


def _shell_word(word: str) -> str:
    if not word.isprintable():
        return f"$'{''.join(map(_shell_letter, word))}'"
    plain_between_quotes = "'" in word and not set(word) & set('"$`\\!')
    return f'"{word}"' if plain_between_quotes else shlex.quote(word)


def _shell_letter(letter: str) -> str:
    """As bash and zsh spell what cannot be seen, so that a page shows it and a paste means it."""
    code = ord(letter)
    if letter in "\\'":
        return f"\\{letter}"
    if letter.isprintable():
        return letter
    if "\udc80" <= letter <= "\udcff":  # a byte of a name that is no UTF-8
        code -= 0xDC00
        return f"\\x{code:02x}"
    return f"\\x{code:02x}" if code < 0x80 else f"\\U{code:08x}"


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
