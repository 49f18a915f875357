"""What an escape in delimited text means, by whose hand the text was written.

``literal`` is the rule of COPY INTO: the escape takes the meaning from a quote, a delimiter, a line
end or another escape, and stays where it is before anything else, so that ``C:\\new`` is itself.
The others are what the databases do with dumps of their own: letters stand for control characters,
and before a letter that means nothing the escape is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from calque.loader.model.file_formats import EscapeStyle

_LETTERS: Mapping[str, Mapping[bytes, bytes]] = MappingProxyType(
    {
        "mysql": {
            b"0": b"\0",
            b"b": b"\b",
            b"n": b"\n",
            b"r": b"\r",
            b"t": b"\t",
            b"Z": b"\x1a",
        },
        "postgresql": {
            b"b": b"\b",
            b"f": b"\f",
            b"n": b"\n",
            b"r": b"\r",
            b"t": b"\t",
            b"v": b"\v",
        },
        "hive": {b"n": b"\n", b"r": b"\r"},
    }
)
_CODES = rb"x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|"
"""PostgreSQL knows bytes by their code, in hexadecimal and in octal."""

Unescape = Callable[[bytes], bytes]


def escaped_pattern(style: EscapeStyle) -> bytes:
    """What an escape takes the meaning from: one byte, or a line end of two.

    Hive cuts its files into lines before it looks for escapes.
    """
    return rb"[^\r\n]" if style == "hive" else rb"(?:\r\n|.)"


def unescaper(style: EscapeStyle, escape: bytes, specials: tuple[bytes, ...]) -> Unescape:
    """What makes the value of an escaped text; ``specials`` are what ``literal`` may escape."""
    mark = re.escape(escape)
    if style == "literal":
        longest = sorted({escape, *specials}, key=len, reverse=True)
        pattern = mark + rb"(" + rb"|".join(map(re.escape, longest)) + rb")"
        return lambda text: re.sub(pattern, rb"\1", text)
    codes = _CODES if style == "postgresql" else b""
    found = re.compile(mark + rb"(" + codes + rb".)", re.DOTALL)
    letters = _LETTERS[style]

    def meaning(match: re.Match[bytes]) -> bytes:
        named = match.group(1)
        if codes and re.fullmatch(_CODES[:-1], named):
            code = int(named[1:], 16) if named.startswith(b"x") else int(named, 8)
            return bytes([code & 0xFF])
        return letters.get(named, named)

    return lambda text: found.sub(meaning, text)
