"""Links of a tree that are copied as links, to where a name can stand for another."""

from __future__ import annotations

from calque.errors import Unsupported
from calque.operator.service import Linking
from calque.transfer.plan.side import Side
from calque.transfer.request.options import TreeOptions
from calque.values import Metadata
from calque.values.file_attributes import LINK_TYPE


class Links:
    """Makes links at a target, if it knows any and they may lead there."""

    def __init__(self, target: Side, options: TreeOptions) -> None:
        service = target.service
        self._into = service if isinstance(service, Linking) else None
        self._options = options

    def takes(self, entry: Metadata) -> bool:
        """Whether an entry stands for a link, and the target has such."""
        return entry.content_type == LINK_TYPE and self._into is not None

    def check(self, key: str, path: str, text: bytes) -> None:
        """Raise what the link at ``path`` of the source cannot be made for."""
        assert self._into is not None
        if self._options.links == "follow":
            raise Unsupported(
                f"{path!r} stands for a link to {text[:200]!r}",
                hint="With --links keep it is made one.",
            )
        self._into.check_link(key, text, unsafe=self._options.links == "unsafe")

    def make(self, key: str, path: str, text: bytes, modified: int | None) -> Metadata:
        """Make it, in one moment."""
        assert self._into is not None
        self.check(key, path, text)
        unsafe = self._options.links == "unsafe"
        return self._into.make_link(key, text, modified=modified, unsafe=unsafe)
