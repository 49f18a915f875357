"""One tree: a service, and what lies below one prefix of it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from calque.errors import CalqueError, NotFound, Unexpected
from calque.operator.paths import is_directory
from calque.operator.service import Linking, Service, Walking
from calque.transfer.model import EVERYTHING, Entries, KeyRange, Order, sort_key
from calque.transfer.plan.sort_on_disk import sort_on_disk
from calque.transfer.plan.split_points import keeps_borders
from calque.transfer.request.filters import NO_FILTERS, Filters
from calque.values import Metadata
from calque.values.file_attributes import LINK_TYPE

Tell = Callable[[str, "str | CalqueError"], None]
"""Gets the path of what a listing finds and cannot be copied: of which kind it is, or the error
that a path which was named by itself has met."""


def tell_nobody(path: str, kind: str | CalqueError) -> None:
    """For whom it does not matter what else lies there."""


def _ignore() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Side:
    """A tree. ``prefix`` is empty or ends in ``/``; on a file system the service is rooted there.

    ``only`` names the paths that are looked at, one by one, instead of a listing.
    """

    service: Service
    prefix: str = ""
    only: tuple[str, ...] | None = None
    links: bool = False
    """Links of a file system are entries of their own, instead of what they lead to."""
    borrowed: bool = False
    """Whether it is somebody else's operator, which is not ours to close."""

    @property
    def is_local(self) -> bool:
        return self.service.scheme == "fs"

    @property
    def order(self) -> Order:
        return "key" if self.service.capability.list_in_key_order else "none"

    def key(self, path: str) -> str:
        """The path of the service for one of the tree."""
        return self.prefix + path

    def location(self, path: str = "") -> str:
        """The canonical URI of a path, also of one that could not be there."""
        try:
            return self.service.location(self.key(path))
        except CalqueError:
            return f"{self.service.location(self.prefix)}{path}"

    def entries(
        self,
        filters: Filters = NO_FILTERS,
        span: KeyRange = EVERYTHING,
        *,
        tell: Tell = tell_nobody,
        seen: Callable[[], None] = _ignore,
    ) -> Entries:
        """What the rules on names may take, as the service lists it: in key order, or in none.

        Limits on sizes and ages are for the caller: an object that they leave out is still there.
        ``seen`` is called for all that was listed, ``tell`` gets what is no object.
        """
        if self.only is not None:
            yield from self._named(span, tell)
            return
        for start in filters.prefixes:
            begin = sort_key(span.after) if span.after else None
            for path, entry in self._below(start, filters, span, tell):
                seen()
                if begin is not None:
                    if sort_key(path) <= begin:
                        continue  # some servers ignore where they are told to begin
                    begin = begin if self.order != "key" else None
                if span.up_to is not None and self.order == "key":
                    if sort_key(path) > sort_key(span.up_to):
                        return
                elif not span.is_everything and not span.holds(path):
                    continue
                if path and filters.takes_path(path):
                    yield path, entry

    def _below(
        self, start: str, filters: Filters, span: KeyRange, tell: Tell
    ) -> Iterator[tuple[str, Metadata]]:
        after = self.key(span.after) if span.after and self.order == "key" else ""
        cut = len(self.prefix)
        if isinstance(self.service, Walking):
            entries = self.service.walk(
                self.key(start),
                start_after=after,
                skip=lambda folder: filters.prunes(folder[cut:]),
                tell=lambda key, kind: _tell_taken(filters, span, key[cut:], kind, tell),
                links=self.links,
            )
        else:
            entries = self.service.list(self.key(start), start_after=after)
        for entry in entries:
            yield entry.path[cut:], entry

    def _named(self, span: KeyRange, tell: Tell) -> Entries:
        for path in sorted(filter(span.holds, self.only or ()), key=sort_key):
            try:
                entry = self.service.stat(self.key(path))
            except NotFound:
                tell(path, NotFound(f"{self.location(path)} does not exist"))
            except CalqueError as error:
                # A folder, a socket, a name that cannot be: one path must not end the others.
                tell(path, error)
            else:
                yield path, entry

    def close(self) -> None:
        """Give back connections, if they are ours."""
        if not self.borrowed:
            self.service.close()

    def keeps_borders(self, page: Sequence[str]) -> bool:
        """Whether a listing can be begun in the middle, as these paths of it show: by one request.

        A server that ignores ``start-after``, or follows another order than it says, cannot.
        """
        if self.is_local:
            return True

        def first_after(path: str) -> str | None:
            found = next(iter(self.service.list(self.prefix, start_after=self.key(path))), None)
            return None if found is None else found.path[len(self.prefix) :]

        return keeps_borders(page, first_after)

    def has_folder(self, path: str) -> bool:
        """Whether a file system has a folder (``name/``); listings show its files alone."""
        return self.is_local and os.path.isdir(self._root + "/" + path)

    def has_empty_folder(self, path: str) -> bool:
        """Whether a file system has a folder of that name with nothing in it."""
        if not self.is_local:
            return False
        try:
            with os.scandir(self._root + "/" + path) as entries:
                return next(entries, None) is None
        except (OSError, ValueError):
            return False

    def has_other(self, path: str) -> bool:
        """Whether a file system has something of that name that no listing shows: a link that leads
        nowhere, a pipe, what lies behind a link that is skipped; or a file that has come since."""
        *folders, _ = parts = path.split("/")
        if not self.is_local or not {"", ".", ".."}.isdisjoint(parts):
            return False  # or it would be that of another name
        at = self._root
        try:
            for name in folders:
                at = f"{at}/{name}"
                if os.path.islink(at):
                    # By the link alone: what it leads to today is no part of the tree.
                    return not self.links and not os.path.isfile(at)
            return not stat.S_ISDIR(os.lstat(f"{self._root}/{path}").st_mode)
        except (OSError, ValueError):
            return False

    @property
    def _root(self) -> str:
        return self.service.location("").removeprefix("file://")

    def exists(self) -> bool:
        """Whether there is a folder, which may be empty, or anything below the prefix."""
        if self.is_local:
            return os.path.isdir(self._root)
        return next(iter(self.service.list(self.prefix)), None) is not None


def _tell_taken(filters: Filters, span: KeyRange, path: str, kind: str, tell: Tell) -> None:
    """A walk looks at whole folders, of which other ranges may hold a part: they tell that."""
    if span.holds(path) and filters.takes_path(path):
        tell(path, kind)


def in_key_order(side: Side, entries: Entries) -> Entries:
    """The entries by the bytes of their paths, each path once.

    What a service lists in key order is only checked; anything else is sorted. Raises Unexpected
    where the order is broken midway: what follows could not be told from what is missing.
    """
    is_sorted = side.order == "key"
    last: bytes | None = None
    for path, entry in entries if is_sorted else sort_on_disk(entries):
        key = sort_key(path)
        if key == last and not is_sorted:
            continue  # servers without an order may show a key on two pages
        if last is not None and key <= last:
            raise Unexpected(
                f"{side.location()}: {path!r} is listed after {last.decode(errors='replace')!r}, "
                "which is not the order of keys",
                hint="Nothing was deleted. Say key_order=false for a server that lists otherwise.",
            )
        last = key
        yield path, entry


def stat_again(service: Service, entry: Metadata) -> Metadata:
    """What was listed as it is now: a link itself, where the listing has shown that."""
    if entry.content_type == LINK_TYPE and isinstance(service, Linking):
        return service.stat_link(entry.path)
    return service.stat(entry.path)


def is_marker(entry: Metadata) -> bool:
    """Whether an entry stands for a folder."""
    return entry.is_dir or is_directory(entry.path)
