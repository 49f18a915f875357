"""Trees that lie in one another are refused before anything is written.

A copy of a tree into itself never ends, and a target that holds its own source loses it to a
delete.
"""

from __future__ import annotations

import os
from itertools import islice

from calque.errors import CalqueError, IsSameFile
from calque.transfer.plan.side import Side
from calque.transfer.request.filters import Filters

_COMPARED = 10
"""Objects that two servers must show alike to be taken for one."""


def refuse_overlap(
    source: Side, target: Side, *filters: Filters | None, clears: bool = False
) -> None:
    """Raise IsSameFile where the trees share a folder.

    An exclude that takes all of the inner tree out of the outer one keeps them apart; not so where
    the target is cleared of what is excluded (``clears``). So do paths that are named one by one,
    unless each would go onto itself.
    """
    inner = _inner(source, target)
    if inner is None or (inner and source.only is not None):
        return
    if inner and not clears and any(each is not None and each.prunes(inner) for each in filters):
        return
    if not inner:
        raise IsSameFile(
            f"{source.location()} and {target.location()} are the same tree",
            hint="Nothing was done.",
        )
    raise IsSameFile(
        f"{source.location()} and {target.location()} overlap: one lies in the other, at {inner}",
        hint=f"Nothing was done. With --exclude '/{inner}' that part is left out.",
    )


def _inner(source: Side, target: Side) -> str | None:
    """Where in the outer tree the inner one lies (``""``: they are one); None if they are apart."""
    if source.is_local and target.is_local:
        return _inner_of_files(_path(source), _path(target))
    if source.service.scheme != target.service.scheme:
        return None
    ours, theirs = source.service.identity(source.prefix), target.service.identity(target.prefix)
    inner = _inner_of_names(_folder(ours.location), _folder(theirs.location))
    if inner is None or ours.server == theirs.server:
        return inner
    return inner if _show_alike(source, target) else None


def _inner_of_names(ours: str, theirs: str) -> str | None:
    if theirs.startswith(ours):
        return theirs[len(ours) :]
    return ours[len(theirs) :] if ours.startswith(theirs) else None


def _inner_of_files(ours: str, theirs: str) -> str | None:
    """By what the system says is one folder: links, other spellings and mounts do not deceive."""
    real, other = os.path.realpath(ours), os.path.realpath(theirs)
    found = _inner_of_names(_folder(real), _folder(other))
    if found is not None:
        return found
    below = _below_same(real, other)
    return below if below is not None else _below_same(other, real)


def _below_same(outer: str, path: str) -> str | None:
    """What leads from ``outer`` to ``path`` if a folder above it is ``outer`` by another name."""
    try:
        wanted = os.stat(outer)
    except OSError:
        return None
    rest = ""
    while True:
        try:
            if os.path.samestat(os.stat(path), wanted):
                return rest
        except OSError:
            pass  # not there yet: what is above it may be
        above, name = os.path.split(path)
        if above == path:
            return None
        path, rest = above, f"{name}/{rest}"


def _show_alike(source: Side, target: Side) -> bool:
    """Whether two endpoints show one bucket: the same objects, made in the same moments.

    An inner tree that is still empty shows nothing: the outer one is looked at then.
    """
    try:
        for prefix in sorted({source.prefix, target.prefix}, key=len, reverse=True):
            ours, theirs = _first_objects(source, prefix), _first_objects(target, prefix)
            if ours or theirs:
                return ours == theirs
    except CalqueError:
        pass  # what cannot be read will be told by the listing itself
    return False


def _first_objects(side: Side, prefix: str) -> list[tuple[object, ...]]:
    return [
        (entry.path, entry.size, entry.etag, entry.last_modified)
        for entry in islice(side.service.list(prefix), _COMPARED)
    ]


def _path(side: Side) -> str:
    return side.service.location("").removeprefix("file://")


def _folder(name: str) -> str:
    return name if name.endswith("/") else f"{name}/"
