"""What is overwritten or deleted at a target is kept elsewhere first, in the same layout."""

from __future__ import annotations

from calque.errors import ConditionNotMatch, NotFound
from calque.operator.copy import start_copy
from calque.operator.move import rename_at_once
from calque.operator.options import CopyOptions
from calque.transfer.plan.side import Side, is_marker
from calque.values import Metadata

_OPTIONS = CopyOptions(stream="auto")


class Backup:
    """A folder that gets what a target loses. An object whose backup fails stays as it is."""

    def __init__(self, target: Side, folder: Side) -> None:
        self._target = target
        self._folder = folder

    def keep(self, path: str, entry: Metadata) -> None:
        """Copy an object that is about to be overwritten; one that is gone needs none.

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
