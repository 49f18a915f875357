"""The commands that do what a page of the store does, ready to be copied into a shell."""

from __future__ import annotations

from calque.console.store_pages.places import Place
from calque.console.text import shell_line


def command_on(folder: str, verb: str, place: Place) -> str:
    """A command on an object or folder: ``calque://`` needs to be told the store."""
    uri = shell_line(f"calque://{place.path}")
    return f"CALQUE_PROJECT={shell_line(folder)} calque {verb} {uri}"


def store_command(*words: str) -> str:
    """A command of ``calque store``."""
    return shell_line("calque", "store", *words)
