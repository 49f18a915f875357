"""Trees that lie in one another are refused before anything is written.

A copy of a tree into itself never ends, and a target that holds its own source loses it to a
delete. One tree may go by two names: a link, another spelling of an endpoint, a store and the S3
gateway before it. Where the names of buckets and keys allow it, and the servers may be others, both
are asked for their first objects: what shows the same ones, made in the same moments, is one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice, permutations

from calque.errors import CalqueError, InvalidInput, IsSameFile
from calque.operator.service import Housed
from calque.transfer.plan.plan import Trees
from calque.transfer.plan.side import Side
from calque.transfer.request.filters import Filters
from calque.values import Metadata

_COMPARED = 10
"""Objects that two servers must show alike to be taken for one."""


def refuse_overlaps(trees: Sequence[Trees], *, removes: bool, clears: bool) -> None:
    """Raise IsSameFile where any tree of a run meets another one that it must not.

    ``removes``: the run deletes, so that the target of one must not hold the source of another.
    """
    for each in trees:
        filters = (each.filters, each.chosen)
        refuse_overlap(each.source, each.target, *filters, clears=clears)
        if each.backup is not None:
            # What is kept must be neither copied nor deleted by the same run.
            refuse_overlap(each.source, each.backup, *filters, clears=clears)
            refuse_overlap(each.target, each.backup, *filters, clears=clears)
    for one, two in permutations(trees, 2) if removes else ():
        source = replace(one.source, only=None)
        refuse_overlap(source, two.target, two.filters, two.chosen, clears=clears)


def refuse_report_inside(trees: Sequence[Trees], report: str | None, *, removes: bool) -> None:
    """Raise InvalidInput where the file of rows would be copied while it grows, or deleted."""
    if report is None:
        return
    place = os.path.realpath(report)
    for each in trees:
        for side in (each.source, each.target) if removes else (each.source,):
            root = _folder(os.path.realpath(_path(side))) if side.is_local else None
            if root is None or not place.startswith(root) or side.only is not None:
                continue
            path = place[len(root) :]
            if each.listed.takes_path(path) and each.takes_path(path):
                raise InvalidInput(
                    f"the report {report} lies in {side.location()}, a tree of this run",
                    hint=f"Nothing was done. Write it elsewhere, or say --exclude '/{path}*'.",
                )


def refuse_overlap(
    source: Side, target: Side, *filters: Filters | None, clears: bool = False
) -> None:
    """Raise IsSameFile where the trees share a folder.

    An exclude that takes all of the inner tree out of the outer one keeps them apart; not so where
    the target is cleared of what is excluded (``clears``). So do paths that are named one by one,
    unless one would go onto itself or onto another of them.
    """
    inner = _inner(source, target)
    if inner is None:
        return
    if inner and source.only is not None:
        _refuse_onto_another(source.only, inner)
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


def _refuse_onto_another(named: Sequence[str], inner: str) -> None:
    """Whichever of both trees is the inner one, a path of it goes by ``inner`` in the outer one."""
    met = next(iter({inner + path for path in named}.intersection(named)), None)
    if met is not None:
        raise IsSameFile(
            f"of the paths that are named {met!r} lies where another of them goes to",
            hint="Nothing was done. Name them in two runs.",
        )


def _inner(source: Side, target: Side) -> str | None:
    """Where in the outer tree the inner one lies (``""``: they are one); None if they are apart."""
    if source.is_local or target.is_local:
        ours_at, theirs_at = _home(source), _home(target)
        return _inner_of_files(ours_at, theirs_at) if ours_at and theirs_at else None
    ours, theirs = source.service.identity(source.prefix), target.service.identity(target.prefix)
    inner = _inner_of_names(_folder(ours.location), _folder(theirs.location))
    if inner is not None and ours.server == theirs.server:
        return inner
    inner = _inner_of_names(_key(source), _key(target))
    return inner if inner is not None and _show_alike(source, target) else None


def _home(side: Side) -> str | None:
    """The folder of this machine that a tree, or the service it is of, is kept in; None: none."""
    if side.is_local:
        return _path(side)
    return side.service.home if isinstance(side.service, Housed) else None


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
    """Whether two servers show one bucket: the same objects, made in the same moments.

    An inner tree that is still empty shows nothing: the outer one is looked at then.
    """
    alike = source.service.scheme == target.service.scheme
    try:
        for name in sorted({_key(source), _key(target)}, key=len, reverse=True):
            ours, theirs = _first_objects(source, name), _first_objects(target, name)
            if ours is None or theirs is None:
                continue  # one was opened below that name, and sees nothing above
            if ours or theirs:
                return _are_same(ours, theirs, with_etags=alike)
    except CalqueError:
        pass  # what cannot be read will be told by the listing itself
    return False


def _first_objects(side: Side, name: str) -> list[Metadata] | None:
    """The first objects below a bucket and key, by paths from there."""
    root = _key(replace(side, prefix=""))
    if not name.startswith(root):
        return None
    prefix = name[len(root) :]
    listed = islice(side.service.list(prefix), _COMPARED)
    return [replace(entry, path=entry.path[len(prefix) :]) for entry in listed]


def _are_same(ours: list[Metadata], theirs: list[Metadata], *, with_etags: bool) -> bool:
    """By names, sizes and moments; two services give one object two etags."""
    fine = all(_is_fine(each) for each in (ours, theirs))
    if not fine and not with_etags and len({entry.last_modified for entry in ours}) < 2:
        return False  # one second proves nothing: a small tree is copied in less
    return [_traits(each, fine=fine, with_etags=with_etags) for each in ours] == [
        _traits(each, fine=fine, with_etags=with_etags) for each in theirs
    ]


def _is_fine(entries: list[Metadata]) -> bool:
    """Whether the times of a listing tell more than seconds."""
    return any(entry.last_modified and entry.last_modified.microsecond for entry in entries)


def _traits(entry: Metadata, *, fine: bool, with_etags: bool) -> tuple[object, ...]:
    moment = entry.last_modified
    if moment is not None:
        moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000 if fine else 0)
    return entry.path, entry.size, moment, entry.etag if with_etags else None


def _path(side: Side) -> str:
    return side.service.location("").removeprefix("file://")


def _key(side: Side) -> str:
    """Bucket and key of a tree, without what tells one server, or one service, from another."""
    location = side.service.identity(side.prefix).location.partition("://")[2]
    host, _, key = location.partition("/")
    return _folder(f"{host.partition(';')[0]}/{key}")


def _folder(name: str) -> str:
    return name if name.endswith("/") else f"{name}/"
