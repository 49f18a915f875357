"""Guesses for the reader of an error message."""

from __future__ import annotations

from calque.loader.run.formats.delimited.dialect import Dialect

_USUAL = (b",", b";", b"\t", b"|")


def delimiter_hint(raw: bytes, dialect: Dialect) -> str:
    """Which other delimiter a line seems to have, for a line without the stated one."""
    others = [mark for mark in _USUAL if mark != dialect.delimiter]
    best = max(others, key=raw.count)
    if dialect.delimiter in raw or not raw.count(best):
        return ""
    return f"; the line has {raw.count(best)} of {best.decode()!r}: is that the delimiter?"
