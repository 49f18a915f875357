"""Numbers that servers tell of sizes: digits and nothing else."""

from __future__ import annotations

import re

_DIGITS = re.compile(r"[0-9]{1,19}")


def count_of(told: object) -> int:
    """A size that a reply tells, as text or as a number; ValueError where it cannot be one.

    ``int`` takes signs, blanks, underscores and the digits of every script, which no server means.
    """
    if isinstance(told, int) and not isinstance(told, bool) and told >= 0:
        return told
    text = told.decode("latin-1") if isinstance(told, bytes) else told
    if not isinstance(text, str) or not _DIGITS.fullmatch(text):
        raise ValueError(f"{str(told)[:40]!r} is no size")
    return int(text)
