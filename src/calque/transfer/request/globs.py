"""The one language of patterns: ``*`` stays within a folder, ``**`` crosses.

=============  ==================================================================
``*``          any letters of one name, also none
``**``         any letters, folders included; ``**/`` also no folder at all
``?``          one letter of a name
``[a-z]``      one of these letters; ``[!a-z]`` and ``[^a-z]`` one of the others
``{a,b}``      either; may be nested and hold any of the above
``\\``          the next letter as it is
leading ``/``  from the root of the tree; without it: at any depth
trailing ``/`` a folder: all that lies below it
=============  ==================================================================

Patterns are matched against whole paths below the root of a tree, letter by letter: upper and lower
case differ, and so do NFC and NFD.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from calque.errors import InvalidInput

_SPECIAL = frozenset("*?[{\\")


@dataclass(frozen=True)
class Glob:
    """One pattern, checked when it is made: InvalidInput says what is wrong with it."""

    text: str

    def __post_init__(self) -> None:
        if not self.text.strip("/"):
            raise InvalidInput(
                f"{self.text!r} is no pattern: it names nothing", hint="'**' is everything."
            )
        if "//" in self.text:
            raise InvalidInput(f"the pattern {self.text!r} has an empty name between two slashes")
        if not {".", ".."}.isdisjoint(self.text.split("/")):
            raise InvalidInput(
                f"the pattern {self.text!r} names '.' or '..', and paths begin below the source",
                hint="/a.txt is a.txt at the top, a.txt is one anywhere; [.] is a dot in a key.",
            )
        assert self._expression is not None  # made here, so that a bad pattern is told at once

    @property
    def is_anchored(self) -> bool:
        return self.text.startswith("/")

    @property
    def is_folder(self) -> bool:
        """Whether it names a folder, and so all that lies below it."""
        return self.text.endswith("/")

    @property
    def is_everything(self) -> bool:
        """Whether there is no path that it does not match."""
        return self.text in ("*", "**", "/**", "**/*", "/**/*", "**/**", "/**/**")

    def matches(self, path: str) -> bool:
        """Whether a path below the root is meant."""
        return self._expression.fullmatch(path) is not None

    def covers(self, folder: str) -> bool:
        """Whether all below a folder (its path ends in ``/``) is surely meant."""
        if self.is_everything:
            return True
        # Only what ends so goes on to any depth: if it matches the folder, it matches all below.
        return (self.is_folder or self.text.endswith("/**")) and self.matches(folder)

    def may_match_below(self, folder: str) -> bool:
        """Whether something below a folder could be meant; in doubt it could."""
        if not self.is_anchored:
            return True
        names = folder.strip("/").split("/") if folder.strip("/") else []
        for position, name in enumerate(names):
            if position == len(self._names):
                return self.is_folder
            wanted = self._names[position]
            if wanted is None:
                return True
            if wanted.fullmatch(name) is None:
                return False
        return len(names) < len(self._names) or self.is_folder

    @cached_property
    def prefix(self) -> str:
        """The letters that every path it matches begins with; none unless it is anchored."""
        if not self.is_anchored:
            return ""
        body, letters = self.text[1:], []
        position = 0
        while position < len(body):
            letter = body[position]
            if letter == "\\" and position + 1 < len(body):
                position += 1
                letter = body[position]
            elif letter in _SPECIAL:
                break
            letters.append(letter)
            position += 1
        return "".join(letters)

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        body = "**" if self.is_everything else self.text.strip("/")
        start = "" if self.is_anchored else "(?:.*/)?"
        end = "/.*" if self.is_folder else ""
        return re.compile(f"{start}{_Translation(self.text, body).run()}{end}", re.DOTALL)

    @cached_property
    def _names(self) -> list[re.Pattern[str] | None]:
        """The names of an anchored pattern, one by one; None from where folders are crossed."""
        names: list[re.Pattern[str] | None] = []
        for name in _split_names(self.text.strip("/")):
            if name is None or "**" in name:
                return [*names, None]
            names.append(re.compile(_Translation(self.text, name).run(), re.DOTALL))
        return names


def _split_names(body: str) -> list[str | None]:
    """The names between slashes; None in place of the rest where an alternative holds a slash."""
    names: list[str | None] = []
    name, depth, position = "", 0, 0
    while position < len(body):
        letter = body[position]
        if letter == "\\":
            name += body[position : position + 2]
            position += 2
            continue
        if letter == "[":
            end = _end_of_set(body, position)
            name += body[position:end]
            position = end
            continue
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "/" and depth:
            return [*names, None]
        if letter == "/":
            names.append(name)
            name = ""
        else:
            name += letter
        position += 1
    return [*names, name]


def _end_of_set(body: str, position: int) -> int:
    """The place after the ``]`` of a set; the end of the pattern where it is not closed."""
    start = position + 1
    if body[start : start + 1] in ("!", "^"):
        start += 1
    found = body.find("]", start + 1)  # a ] that stands first is one of the letters
    return len(body) if found < 0 else found + 1


class _Translation:
    """A pattern's way to a regular expression."""

    def __init__(self, whole: str, body: str) -> None:
        self._whole = whole
        self._body = body
        self._at = 0
        self._depth = 0

    def run(self) -> str:
        parts = []
        while self._at < len(self._body):
            parts.append(self._next())
        if self._depth:
            raise self._refuse("{ without its }")
        return "".join(parts)

    def _next(self) -> str:
        body, at = self._body, self._at
        letter = body[at]
        self._at += 1
        if letter == "*":
            return self._stars()
        if letter == "?":
            return "[^/]"
        if letter == "[":
            return self._set(at)
        if letter == "\\":
            if self._at == len(body):
                raise self._refuse("\\ at its end, with nothing behind it")
            self._at += 1
            return re.escape(body[at + 1])
        if letter == "{":
            self._depth += 1
            return "(?:"
        if letter == "}" and self._depth:
            self._depth -= 1
            return ")"
        if letter == "," and self._depth:
            return "|"
        return re.escape(letter)

    def _stars(self) -> str:
        body, at = self._body, self._at - 1
        while self._at < len(body) and body[self._at] == "*":
            self._at += 1
        if self._at - at == 1:
            return "[^/]*"
        # As a whole name with more behind it, it may stand for no folder at all.
        begins = at == 0 or body[at - 1] in "/{,"
        if begins and body[self._at : self._at + 1] == "/":
            self._at += 1
            return "(?:.*/)?"
        return ".*"

    def _set(self, at: int) -> str:
        end = _end_of_set(self._body, at)
        letters = self._body[at + 1 : end - 1]
        if self._body[end - 1] != "]" or end <= at + 2:
            raise self._refuse("[ without its ]")
        self._at = end
        negated = letters[:1] in ("!", "^")
        if negated:
            letters = letters[1:]
        if "/" in letters:
            raise self._refuse("a / among the letters of [], which never cross folders")
        inside = re.sub(r"([\\\[\]^&~|])", r"\\\1", letters)
        try:
            re.compile(f"[{inside}]")
        except re.error as error:
            raise self._refuse(f"[{letters}], which is no set of letters") from error
        return f"[^/{inside}]" if negated else f"[{inside}]"

    def _refuse(self, what: str) -> InvalidInput:
        return InvalidInput(
            f"the pattern {self._whole!r} has {what}",
            hint="A \\ before a letter takes away its meaning.",
        )
