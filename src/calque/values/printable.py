"""Text of others on one line, with nothing in it that cannot be seen."""

from __future__ import annotations


def printable(text: str) -> str:
    """What could trick a terminal or a reader is escaped: control characters, ends of lines, marks
    that turn the order of letters around."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")
        for letter in text
    )
