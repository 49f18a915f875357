"""Counts of things as people read them."""

from __future__ import annotations


def count_of(number: int, thing: str) -> str:
    """``1 file``, ``2,000 files``: the same in every command, report and page."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"
