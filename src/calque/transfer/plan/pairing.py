"""The trees of a request: each source with its place at the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, permutations

from calque.errors import InvalidInput
from calque.operator.layers.chain import Layer
from calque.transfer.plan.overlap import refuse_overlap
from calque.transfer.plan.places import (
    Origin,
    as_folder,
    as_object,
    below,
    missing,
    open_source,
    refuse_link,
)
from calque.transfer.plan.plan import Trees
from calque.transfer.plan.side import Side
from calque.transfer.request.tree_request import TreeRequest


def pair_up(
    request: TreeRequest, target: Side, layers: tuple[Layer, ...], backup: Side | None = None
) -> list[Trees]:
    """The trees of a request, each source with its place at the target."""
    if request.kind == "mv":
        for each in request.sources:
            refuse_link(each)
    origins = [
        open_source(each, request.source_options, layers, globs=request.options.globs)
        for each in request.sources
    ]
    origins = [settle_name(each) for each in origins]
    several = len(origins) > 1
    trees = [_trees(origin, target, request, several, backup) for origin in origins]
    if request.options.delete or request.kind == "mv":
        _refuse_meeting(trees, clears=request.options.delete_excluded)
    return trees


def _trees(
    origin: Origin, target: Side, request: TreeRequest, several: bool, backup: Side | None
) -> Trees:
    only = request.options.files_from
    links = request.options.links != "follow"
    source, into = (
        replace(side, links=links) for side in (origin.side, below(target, origin.name))
    )
    if origin.single:
        into = replace(into, only=source.only)
    elif only is not None:
        source, into = replace(source, only=only), replace(into, only=only)
    label = origin.name if several else ""
    named = bool(origin.name)
    kept = None if backup is None else below(backup, origin.name)
    return Trees(source, into, request.options.filters, origin.chosen, kept, named, label)


def _refuse_meeting(trees: Sequence[Trees], *, clears: bool) -> None:
    """Raise where one tree of a run may overwrite, or clear away, what another brings or is."""
    for one, two in combinations(trees, 2):
        if _may_meet(one, two, clears=clears):
            raise InvalidInput(
                f"{one.source.location()} and {two.source.location()} may bring the same paths to "
                "one folder: what one lacks another may have, and one would overwrite the other",
                hint="Nothing was done. Leave out the slash at their ends, so that each gets a "
                "folder of its name, or name them one at a time.",
            )
    for one, two in permutations(trees, 2):
        source = replace(one.source, only=None)
        refuse_overlap(source, two.target, two.filters, two.chosen, clears=clears)


def _may_meet(one: Trees, two: Trees, *, clears: bool) -> bool:
    """Whether both may have the same path of the target that they share."""
    if one.label and two.label:
        return one.label == two.label
    if one.label or two.label:
        outer, folder = (two, one.label) if one.label else (one, two.label)
        return not _lacks(outer, folder, clears=clears)
    if one.target.only is None:
        one, two = two, one
    if one.target.only is None:
        return True
    return not all(_lacks(two, path, clears=clears) for path in one.target.only)


def _lacks(trees: Trees, path: str, *, clears: bool) -> bool:
    """Whether a file, or a folder (``name/``), of the target is surely none of this tree's."""
    is_folder = path.endswith("/")
    if trees.target.only is not None:
        return not any(
            each.startswith(path) if is_folder else each == path for each in trees.target.only
        )
    filters = [trees.chosen] if clears else [trees.chosen, trees.filters]
    if is_folder:
        return any(each is not None and each.prunes(path) for each in filters)
    return any(each is not None and not each.takes_path(path) for each in filters)


def settle_name(origin: Origin) -> Origin:
    """Whether a name without a slash is a folder or an object; the service is asked."""
    if not origin.single:
        return origin
    folder = as_folder(origin)
    if not origin.side.is_local and folder.side.exists():
        return folder
    single = as_object(origin)
    if next(iter(single.side.entries()), None) is None:
        raise missing(origin)
    return single
