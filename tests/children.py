"""The processes that a test has started, by what they run."""

from __future__ import annotations

import psutil


def children_running(word: str) -> list[psutil.Process]:
    """Those whose command has the word; one that is over, and waits to be buried, is none."""
    return [each for each in psutil.Process().children() if word in _command_of(each)]


def _command_of(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
