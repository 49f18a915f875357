"""Several sources of one run: none may overwrite, or clear away, what another brings.

What two sources may both have is first told from their names and patterns. Where that does not keep
them apart, a run that deletes or moves is refused: what is seen to be apart now may not be so when
it is deleted. Any other is listed once, and refused where it does share a path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, groupby

from calque.errors import InvalidInput
from calque.transfer.model import Entries
from calque.transfer.plan.plan import Trees
from calque.transfer.plan.sort_on_disk import sort_on_disk
from calque.values import Metadata

_SHOWN = 3


def refuse_shared_paths(trees: Sequence[Trees], *, removes: bool, clears: bool) -> None:
    """Raise where two sources have one path of the target: the last would win, anew in every run.

    ``removes``: the run moves, or deletes at the target what a source lacks. ``clears``: it deletes
    what filters leave out, too, so that they keep nothing apart.
    """
    meeting = [pair for pair in combinations(trees, 2) if _may_meet(*pair, clears=clears)]
    if not meeting:
        return
    if removes:
        one, two = meeting[0]
        raise InvalidInput(
            f"{one.source.location()} and {two.source.location()} may bring the same paths to "
            "one folder: what one lacks another may have, and one would overwrite the other",
            hint="Nothing was done. Leave out the slash at their ends, so that each gets a "
            "folder of its name, or name them one at a time.",
        )
    _refuse_seen([each for each in trees if any(each in pair for pair in meeting)])


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


def _refuse_seen(trees: Sequence[Trees]) -> None:
    """List sources that may meet, and raise where they do."""
    shared, count = [], 0
    for path in _find_shared(trees):
        count += 1
        if count <= _SHOWN:
            shared.append(path)
    if count:
        more = f" and {count - _SHOWN} more" if count > _SHOWN else ""
        raise InvalidInput(
            f"more than one of the sources has {', '.join(map(repr, shared))}{more}",
            hint="Nothing was written. Leave out the slash at the ends of sources, so that each "
            "gets a folder of its name, or exclude what only one should give.",
        )


def _find_shared(trees: Sequence[Trees]) -> Iterator[str]:
    paths = sort_on_disk(each for number, tree in enumerate(trees) for each in _paths(number, tree))
    for path, group in groupby(paths, key=lambda each: each[0]):
        if len({entry.path for _, entry in group}) > 1:
            yield path


def _paths(number: int, trees: Trees) -> Entries:
    """Where the objects of a source go; each with the number of its source."""
    mark = Metadata(path=str(number))
    only = trees.source.only
    if only is not None and len(only) == 1:
        yield trees.label + only[0], mark  # it was named, and is known to be there
        return
    for path, entry in trees.source.entries(trees.listed):
        if trees.takes_path(path) and trees.filters.takes_entry(entry):
            yield trees.label + path, mark
