"""Sources that would write the same path of the target: refused before any of them does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from calque.errors import InvalidInput
from calque.transfer.model import Entries
from calque.transfer.plan.plan import Trees
from calque.transfer.plan.sort_on_disk import sort_on_disk
from calque.values import Metadata

_SHOWN = 3


def refuse_shared_paths(trees: Sequence[Trees]) -> None:
    """Raise where two sources have one path: the last would win, and win anew in every run.

    Folders that keep names of their own lie apart. Others are listed once for this; what was
    named by itself is not even looked at.
    """
    labels = [each.label for each in trees]
    if len(trees) < 2 or ("" not in labels and len(set(labels)) == len(labels)):
        return
    shared, count = [], 0
    for path in _twice(trees):
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


def _twice(trees: Sequence[Trees]) -> Iterator[str]:
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
