"""Paths named in a file, one a line or between NULs: what ``--files-from`` takes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from calque.errors import InvalidInput, NotFound, PermissionDenied

STANDARD_INPUT = "-"


def read_names(file: str | os.PathLike[str], *, nul: bool = False) -> tuple[str, ...]:
    """The paths that a file (``-``: standard input) names, each once, as they stand there.

    They are relative to the source. Empty lines name nothing; a ``./`` before a name is left out.
    """
    text = _read(file)
    lines = text.split(b"\0") if nul else text.split(b"\n")
    names: dict[str, None] = {}
    for number, line in enumerate(lines, start=1):
        name = os.fsdecode(line if nul else line.removesuffix(b"\r"))
        while name.startswith("./"):
            name = name[2:]
        if not name:
            continue
        _refuse_leaving(name, number, os.fspath(file))
        names[name] = None
    if not names:
        raise InvalidInput(f"{os.fspath(file)!r} names no path", hint="One path a line.")
    return tuple(names)


def _read(file: str | os.PathLike[str]) -> bytes:
    if file == STANDARD_INPUT:
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except FileNotFoundError as error:
        raise NotFound(f"there is no file {os.fspath(file)!r} with names") from error
    except PermissionError as error:
        raise PermissionDenied(f"{os.fspath(file)!r} cannot be read: {error.strerror}") from error
    except OSError as error:
        raise InvalidInput(f"{os.fspath(file)!r} cannot be read: {error.strerror}") from error


def _refuse_leaving(name: str, number: int, file: str) -> None:
    if name.startswith("/"):
        what = "begins with /, but paths are relative to the source"
    elif ".." in name.split("/"):
        what = "has a .. in it, which would lead out of the source"
    else:
        return
    raise InvalidInput(f"{file}, name {number}: {name!r} {what}")
