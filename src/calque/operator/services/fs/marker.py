"""How a temporary file of ours is known from any other: by its name alone.

A file has no place for a mark that every file system keeps, so the name says it: chance, by which
two copies to one target never meet, then the target's name, by which a sweep finds what it was for.
"""

from __future__ import annotations

import os
import re
import secrets

from calque.errors import InvalidInput

NAMES = re.compile(r"\.calque-[0-9a-f]{24}(?:-([^/\0]+))?\.tmp")
"""The names of our temporary files: chance, then the target's name where there is room for it."""

_PREFIX = ".calque-"
_CHANCE = 24
_LONGEST = 255
"""The bytes of a name that most file systems take; some take fewer."""


def is_temporary(name: str) -> bool:
    """Whether a file name (not a path) carries our marker."""
    return name.startswith(_PREFIX) and NAMES.fullmatch(name) is not None


def target_of(key: str) -> str:
    """The target that a temporary file (a key) was for; its own key where its name cannot tell."""
    directory, slash, name = key.rpartition("/")
    match = NAMES.fullmatch(name)
    return f"{directory}{slash}{match[1]}" if match and match[1] else key


def refuse_reserved(key: str) -> None:
    """Names with our marker are never listed and may be swept: nobody may keep data there."""
    if is_temporary(key.rpartition("/")[2]):
        raise InvalidInput(
            f"{key!r} is a name that calque keeps for its temporary files",
            hint="Choose another name",
        )


def new_name(target: str) -> str:
    """A name for a temporary file; without the target's where there is no room for it."""
    chance = _PREFIX + secrets.token_hex(_CHANCE // 2)
    named = f"{chance}-{target}.tmp" if target else f"{chance}.tmp"
    return named if len(os.fsencode(named)) <= _LONGEST else f"{chance}.tmp"


def change_name(name: str) -> str:
    """Another name of the same length and the same target."""
    return _PREFIX + secrets.token_hex(_CHANCE // 2) + name[len(_PREFIX) + _CHANCE :]
