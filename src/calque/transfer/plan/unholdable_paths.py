"""Paths that a target cannot hold, found in the plan: each is an entry of its own, no crash."""

from __future__ import annotations

import os

from calque.operator.services.fs.marker import is_temporary
from calque.transfer.model import Pair
from calque.transfer.plan.side import Side, is_marker

_LONGEST_NAME = 255
_LONGEST_KEY = 1024


class Fitness:
    """Asked for every pair of a plan, in the order of keys."""

    def __init__(self, target: Side) -> None:
        self._local = target.is_local
        self._prefix = target.prefix
        self._unfit = target.service.capability.unfit_in_keys
        self._objects: list[str] = []

    def objection(self, pair: Pair, *, is_taken: bool) -> str | None:
        """Why no object of this path can be at the target; None where it can.

        ``is_taken``: whether its source is to be there. One that is not is in nobody's way.
        """
        if not self._local:
            return self._objection_to_key(pair.path)
        objection = self._objection_to_file(pair) or self._objection_to_place(pair.path)
        if objection is None and (is_taken or pair.target is not None):
            self._note_file(pair.path)
        return objection

    def _objection_to_key(self, path: str) -> str | None:
        try:
            encoded = (self._prefix + path).encode()
        except UnicodeEncodeError:
            return "the name is no UTF-8, which keys must be"
        if len(encoded) > _LONGEST_KEY:
            return f"the key would have {len(encoded)} bytes, {_LONGEST_KEY} are the most"
        if unfit := next((letter for letter in self._unfit if letter in path), None):
            return f"the server would change {unfit!r} in a key"
        return None

    def _objection_to_file(self, pair: Pair) -> str | None:
        path = pair.path
        if "\0" in path:
            return "no file name can hold a NUL"
        names = path.removesuffix("/").split("/")
        if any(name in ("", ".", "..") for name in names):
            return "a part of the path is empty, '.' or '..', which no file can be called"
        if any(len(os.fsencode(name)) > _LONGEST_NAME for name in names):
            return f"a part of the path is longer than {_LONGEST_NAME} bytes"
        if pair.source is not None and is_marker(pair.source) and pair.source.size:
            return "a key that ends in / has bytes, and a folder can have none"
        if is_temporary(names[-1]):
            return "it is a name that calque keeps for its temporary files"
        return None

    def _objection_to_place(self, path: str) -> str | None:
        """``a`` and ``a/b`` cannot both be files. In the order of keys ``a`` comes before."""
        # What does not begin the present path cannot begin any later one.
        while self._objects and not path.startswith(self._objects[-1]):
            self._objects.pop()
        above = next((name for name in self._objects if path.startswith(f"{name}/")), None)
        if above is not None:
            return f"{above!r} is an object too, and a file cannot be a folder"
        return None

    def _note_file(self, path: str) -> None:
        if not path.endswith("/"):
            self._objects.append(path)
