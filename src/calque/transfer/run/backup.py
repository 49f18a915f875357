"""What is overwritten or deleted at a target is kept elsewhere first, in the same layout."""

from __future__ import annotations

from calque.errors import ConditionNotMatch, NotFound
from calque.operator.copy import start_copy
from calque.operator.move import rename_at_once
from calque.operator.options import CopyOptions
from calque.transfer.model import Pair
from calque.transfer.plan.rules import Comparison
from calque.transfer.plan.side import Side, is_marker
from calque.values import Metadata

_OPTIONS = CopyOptions(stream="auto")


class Backup:
    """A folder that gets what a target loses. An object whose backup fails stays as it is."""

    def __init__(self, target: Side, folder: Side, *, resumed: Side | None = None) -> None:
        """``resumed``: the source of a run that an earlier process has begun."""
        self._target = target
        self._folder = folder
        self._resumed = resumed

    def keep_overwritten(self, pair: Pair) -> None:
        """Keep an object that is about to be overwritten by its source."""
        assert pair.target is not None
        if not self._is_ours(pair):
            self.keep(pair.path, pair.target)

    def _is_ours(self, pair: Pair) -> bool:
        """Whether the target is what an earlier process of the run has made of the source.

        It may have died before it noted that. What it had kept must not be lost to its own copy.
        """
        if self._resumed is None or pair.source is None or pair.target is None:
            return False
        try:
            self._folder.service.stat(self._folder.key(pair.path))
        except NotFound:
            return False
        compare = Comparison("checksum", self._resumed, self._target, download=True)
        return compare.decide(pair).step == "keep"

    def keep(self, path: str, entry: Metadata) -> None:
        """Copy an object that is about to go; one that is gone needs none.

        A copy and not a move: the target is the old object or the new one at every moment.
        """
        if is_marker(entry):
            return
        origin, into = self._target.service, self._folder.service
        try:
            start_copy(origin, entry, into, self._folder.key(path), _OPTIONS).run()
        except NotFound:
            return
        except ConditionNotMatch as error:
            error.message = f"it was not overwritten, since its backup failed: {error.message}"
            raise

    def take(self, path: str, entry: Metadata) -> bool:
        """Keep an object that is about to be deleted; True where it was moved, and so is gone."""
        if is_marker(entry):
            return False
        origin, into = self._target.service, self._folder.service
        found = origin.stat(entry.path)
        if found.pin != entry.pin:
            raise ConditionNotMatch(
                f"{origin.location(entry.path)} was rewritten since it was listed; it was kept"
            )
        if rename_at_once(origin, found, into, self._folder.key(path), _OPTIONS) is not None:
            return True
        self.keep(path, entry)
        return False
