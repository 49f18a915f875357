"""What is overwritten or deleted at a target is kept elsewhere first, in the same layout."""

from __future__ import annotations

from dataclasses import replace

from calque.errors import ConditionNotMatch, NotFound
from calque.operator.copy import start_copy
from calque.operator.move import rename_at_once
from calque.operator.options import CopyOptions, WriteOptions
from calque.operator.service import Linking
from calque.transfer.model import Pair
from calque.transfer.plan.rules import Comparison
from calque.transfer.plan.side import Side, is_marker, stat_again
from calque.values import Metadata
from calque.values.file_attributes import LINK_TYPE

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
            self.keep(pair.target_path, pair.target)

    def _is_ours(self, pair: Pair) -> bool:
        """Whether the target is what an earlier process of the run has made of the source.

        It may have died before it noted that. What it had kept must not be lost to its own copy.
        """
        if self._resumed is None or pair.source is None or pair.target is None:
            return False
        kept = replace(pair.target, path=self._folder.key(pair.target_path))
        try:
            stat_again(self._folder.service, kept)
        except NotFound:
            return False
        if pair.target.content_type == LINK_TYPE:
            ours = self._resumed.service
            return isinstance(ours, Linking) and self._text(pair.target) == (
                ours.read_link(pair.source.path)
            )
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
            if entry.content_type == LINK_TYPE:
                self._keep_link(self._folder.key(path), self._text(entry))
            else:
                start_copy(origin, entry, into, self._folder.key(path), _OPTIONS).run()
        except NotFound:
            return
        except ConditionNotMatch as error:
            error.message = f"it was not overwritten, since its backup failed: {error.message}"
            raise

    def _text(self, link: Metadata) -> bytes:
        origin = self._target.service
        assert isinstance(origin, Linking)  # nobody else lists links
        return origin.read_link(link.path)

    def _keep_link(self, key: str, text: bytes) -> None:
        """A link that goes is kept as one, wherever it leads: it is as it was made by its owner."""
        into = self._folder.service
        if isinstance(into, Linking):
            into.make_link(key, text, unsafe=True)
        else:
            into.write(key, (text,), WriteOptions(content_type=LINK_TYPE))

    def take(self, path: str, entry: Metadata) -> bool:
        """Keep an object that is about to be deleted; True where it was moved, or is gone."""
        if is_marker(entry):
            return False
        origin, into = self._target.service, self._folder.service
        try:
            found = stat_again(origin, entry)
        except NotFound:
            return True
        if found.pin != entry.pin:
            raise ConditionNotMatch(
                f"{origin.location(entry.path)} was rewritten since it was listed; it was kept"
            )
        is_link = entry.content_type == LINK_TYPE
        if (
            not is_link
            and rename_at_once(origin, found, into, self._folder.key(path), _OPTIONS) is not None
        ):
            return True
        self.keep(path, entry)
        return False
