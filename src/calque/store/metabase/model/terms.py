"""What somebody holds for some time: its end stands in a row, put off again and again."""

from __future__ import annotations

_CLOCKS_DIFFER_US = 24 * 3600 * 1_000_000


def is_held(until: int, now: int, length: int) -> bool:
    """Whether what was taken for ``length`` at a time is still somebody's.

    An end that is too far away was set before the clock was put back. Whoever set it and is alive
    has set it anew since; if not, nobody would be let in for as long as the clock was wrong.
    """
    return now < until <= now + length + _CLOCKS_DIFFER_US
