"""The trees of a request: each source with its place at the target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from calque.errors import CalqueError, NotFound
from calque.operator.layers.chain import Layer
from calque.transfer.plan.places import (
    Origin,
    as_folder,
    as_object,
    below,
    kept_name,
    missing,
    open_source,
    refuse_link,
)
from calque.transfer.plan.plan import Trees
from calque.transfer.plan.side import Side
from calque.transfer.request.tree_request import TreeRequest

FindLeft = Callable[[Sequence[Trees], Sequence[int]], Sequence[bool] | None]
"""Gets trees, and the numbers of those whose source is not there. Where they are what is left of an
earlier process it tells which sources were folders that keep their names; else None."""


def _find_none(trees: Sequence[Trees], gone: Sequence[int]) -> None:
    """There was no earlier process."""


def pair_up(
    request: TreeRequest,
    target: Side,
    layers: tuple[Layer, ...],
    backup: Side | None = None,
    *,
    find_left: FindLeft = _find_none,
) -> list[Trees]:
    """The trees of a request, each source with its place at the target.

    NotFound for a source that is not there, unless an earlier process was done with it.
    """
    several = len(request.sources) > 1

    def pair(settled: Sequence[Origin]) -> list[Trees]:
        return [_trees(origin, target, request, several, backup) for origin in settled]

    return _settle_all(request, layers, pair, find_left)


def pair_with_itself(
    request: TreeRequest, layers: tuple[Layer, ...], *, find_left: FindLeft = _find_none
) -> list[Trees]:
    """The trees of a request that only deletes: each is what it is held against."""

    def pair(settled: Sequence[Origin]) -> list[Trees]:
        filters, several = request.options.filters, len(settled) > 1
        return [
            Trees(
                replace(each.side, links=True),  # a link goes itself, wherever it leads
                replace(each.side, links=True),
                filters,
                each.chosen,
                named=bool(each.name),
                label=each.name if several else "",
            )
            for each in settled
        ]

    return _settle_all(request, layers, pair, find_left)


def _settle_all(
    request: TreeRequest,
    layers: tuple[Layer, ...],
    pair: Callable[[Sequence[Origin]], list[Trees]],
    find_left: FindLeft,
) -> list[Trees]:
    if request.kind in ("mv", "rm"):
        for each in request.sources:
            refuse_link(each)
    origins = [
        open_source(each, request.source_options, layers, globs=request.options.globs)
        for each in request.sources
    ]
    settled = [_settle(each) for each in origins]
    gone = [number for number, each in enumerate(settled) if each is None]
    if not gone:
        return pair([each for each in settled if each is not None])
    there = [each or as_object(origin) for each, origin in zip(settled, origins, strict=True)]
    named = find_left(pair(there), gone)
    if named is None:
        raise missing(origins[gone[0]])
    for number in gone:
        there[number] = _take_for(origins[number], named=named[number])
    return pair(there)


def pair_again(
    request: TreeRequest, number: int, target: Side, layers: tuple[Layer, ...], *, named: bool
) -> Trees:
    """One pair of a request that was paired up before, elsewhere: nothing is asked of a service.

    ``named``: whether its source was found to be a folder that keeps its name. It need not be there
    any more, nor those of other pairs: they may have been moved meanwhile.
    """
    given = request.sources[number]
    origin = open_source(given, request.source_options, layers, globs=request.options.globs)
    if origin.single:
        origin = _take_for(origin, named=named)
    return _trees(origin, target, request, len(request.sources) > 1, None)


def _trees(
    origin: Origin, target: Side, request: TreeRequest, several: bool, backup: Side | None
) -> Trees:
    only = _paths_of(origin, request)
    links = request.options.links != "follow"
    source, into = (
        replace(side, links=links) for side in (origin.side, below(target, origin.name))
    )
    if origin.single:
        left_out = request.options.as_reported and only is not None and origin.single not in only
        source = replace(source, only=()) if left_out else source
        into = replace(into, only=source.only)
    elif only is not None:
        source, into = replace(source, only=only), replace(into, only=only)
    label = origin.name if several else ""
    named = bool(origin.name)
    kept = None if backup is None else below(backup, origin.name)
    return Trees(source, into, request.options.filters, origin.chosen, kept, named, label)


def _paths_of(origin: Origin, request: TreeRequest) -> tuple[str, ...] | None:
    """The paths that were named of one source. A report of several tells them apart by a name at
    their beginning, or, of a source that keeps none, by the lack of one."""
    only = request.options.files_from
    if only is None or not request.options.as_reported or len(request.sources) == 1:
        return only
    if origin.name:
        cut = len(origin.name)
        return tuple(path[cut:] for path in only if path.startswith(origin.name))
    if origin.single:
        return only
    names = {name for name in map(kept_name, request.sources) if name}
    return tuple(path for path in only if path.partition("/")[0] not in names)


def _settle(origin: Origin) -> Origin | None:
    if not origin.single:
        return origin
    folder = as_folder(origin)
    if not origin.side.is_local and folder.side.exists():
        return folder
    single, told = as_object(origin), list[str | CalqueError]()
    found = next(iter(single.side.entries(tell=lambda path, kind: told.append(kind))), None)
    for each in told:
        # Nobody may look at it, or it is a pipe: that is not the same as nothing.
        if isinstance(each, CalqueError) and not isinstance(each, NotFound):
            raise each
    return None if found is None else single


def _take_for(origin: Origin, *, named: bool) -> Origin:
    return as_folder(origin) if named else as_object(origin)
