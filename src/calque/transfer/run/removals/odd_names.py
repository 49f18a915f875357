"""Names that some servers change, tried at a target before anything is moved under such a one.

A server that takes ``a//b`` for ``a/b``, or a ``\\`` for a ``/``, lets one of two objects take the
place of the other, and says that both were written. A copy is made again from its source; of a move
nothing would be left.
"""

from __future__ import annotations

import re
import threading
import uuid

from calque.errors import CalqueError
from calque.operator.options import DeleteOptions, WriteOptions
from calque.transfer.model import Decision
from calque.transfer.plan.side import Side
from calque.transfer.run.removals.two_trees import look_prefix

_KINDS = (
    (re.compile(r"//"), "//x"),
    (re.compile(r"\\"), "\\x"),
    (re.compile(r"(^|/)\.(/|$)"), "/./x"),
    (re.compile(r"(^|/)\.\.(/|$)"), "/../x"),
)
"""What makes a name an odd one, and how one of its kind ends."""
_FOLDER = (re.compile(r"/$"), "/")
"""So may be what has bytes and is called like a folder; its marker has none to lose."""


class OddNames:
    """Tries each kind once, when it is first asked for. Safe between threads."""

    def __init__(self, source: Side, target: Side) -> None:
        self._source = source
        self._target = target
        self._lock = threading.Lock()
        self._found: dict[str, str] = {}

    def objection(self, decision: Decision) -> str:
        """Why an object is not moved there; empty where nothing speaks against it."""
        if self._target.is_local:
            return ""  # what a file system cannot hold is refused by the plan
        name = f"/{decision.pair.target_path}"
        # What is empty is asked for too: it would empty the other one.
        kinds = (*_KINDS, _FOLDER) if decision.size else _KINDS
        with self._lock:
            found = (self._try_once(ending) for sign, ending in kinds if sign.search(name))
            return next(filter(None, found), "")

    def _try_once(self, ending: str) -> str:
        if ending not in self._found:
            try:
                self._found[ending] = self._try(ending)
            except CalqueError as error:
                why = f"the target could not be asked whether it keeps such a name: {error.message}"
                self._found[ending] = why
        return self._found[ending]

    def _try(self, ending: str) -> str:
        into = self._target.service
        name = self._target.key(f"{look_prefix(self._source, self._target)}{uuid.uuid4().hex}")
        made = into.write(name + ending, (b"calque",), WriteOptions())
        try:
            # By the beginning of it, which is plain: some echo an odd one as it was asked for.
            kept = any(each.path == name + ending and each.size for each in into.list(name))
        finally:
            version = made.version if into.capability.versions else None
            into.delete(name + ending, DeleteOptions(version=version))
        return "" if kept else "the target shows such a name as another one"
