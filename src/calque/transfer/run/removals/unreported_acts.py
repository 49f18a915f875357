"""What an earlier process has deleted or moved, and died before it could tell: told now.

It had announced that, some objects together, and no listing shows it any more. So each of them that
has no row is looked for by its name.

A request that it had sent may still reach the server, after that look too. So what is to be deleted
is listed first, and only what the listing lacks is looked for: each object is in one of the two. A
move looks before it lists, since it counts what it lists by ranges; what was still there then is
watched until its range was listed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from calque.errors import NotFound
from calque.operator.service import Linking
from calque.transfer.model import KeyRange, Row, sort_key
from calque.transfer.plan.plan import Trees
from calque.transfer.plan.side import Side
from calque.transfer.run.removals.deletes import folders_of, remove_emptied
from calque.transfer.run.removals.two_trees import remove_left_looks
from calque.transfer.run.run_context import Shared
from calque.values import Metadata


def untold_of(shared: Shared, number: int) -> dict[str, Row]:
    """What an earlier process has announced of a tree, and has no row, by path."""
    left = None if shared.journal is None else shared.journal.unfinished
    if left is None:
        return {}
    return {
        row.path: row
        for tree, rows in left.announced
        for row in rows
        if tree == number
        and (number, row.path) not in shared.known
        # The journal keeps an announced page of a move until its next note. By then the range may
        # be finished, and the rows of it written.
        and (not shared.moves or left.holds(number, row.path))
    }


def tell_deleted(
    shared: Shared,
    trees: Trees,
    number: int,
    missing: Mapping[str, Row],
    like: Side | None = None,
) -> None:
    """Write rows of deletes that were announced of a tree, and that its listing does not show. The
    folders that they have left empty go, too, but for those that are so in the tree ``like`` it."""
    left = None if shared.journal is None else shared.journal.unfinished
    if left is None:
        return
    found = _look_for_all(shared, missing.values(), partial(_find_deleted, trees))
    announced = (row.path for tree, rows in left.announced for row in rows if tree == number)
    remove_emptied(trees.target, folders_of(announced), like)
    _tell(shared, trees, number, [row for row in found if row is not None])


def tell_moved(shared: Shared, trees: Sequence[Trees]) -> Shared:
    """Write the rows of a move that are missing; what is given back knows them too, and watches
    what is still where it was."""
    journal = shared.journal
    if journal is None or not shared.moved_before:
        return shared
    known, watched = dict(shared.known), dict(shared.watched)
    for number, each in enumerate(trees):
        remove_left_looks(each.source, each.target)
        untold = untold_of(shared, number)
        found = _look_for_all(shared, untold.values(), partial(find_moved, each))
        told = [row for row in found if row is not None]
        known |= {(number, row.path): row for row in told}
        rest = [row for row in untold.values() if (number, row.path) not in known]
        watched |= {(number, row.path): row for row in rest}
        if rest:  # before what they were announced by is over
            last = max((row.path for row in rest), key=sort_key)
            journal.announce(number, rest, KeyRange(up_to=last))
        _tell(shared, each, number, told)
    return replace(shared, known=known, watched=watched)


def find_moved(trees: Trees, row: Row) -> Row | None:
    """The row of an object that was to be moved; None where it is still at the source."""
    if _look(trees.source, row.path) is not None:
        return None
    found = _look(trees.target, row.target or row.path)
    if found is None:
        why = "it is gone from the source since it was listed, and is not at the target"
        return replace(row, outcome="changed", why=why, error=NotFound.__name__)
    sum_ = found.checksum
    return replace(
        row,
        target_size=found.size,
        target_etag=found.etag,
        checksum=f"{sum_.algorithm}:{sum_.value}" if sum_ else None,
        version=found.version,
    )


def _find_deleted(trees: Trees, row: Row) -> Row | None:
    return row if _look(trees.target, row.path) is None else None


def _look_for_all(
    shared: Shared, rows: Collection[Row], look: Callable[[Row], Row | None]
) -> list[Row | None]:
    if not rows:
        return []
    with ThreadPoolExecutor(shared.options.concurrent, "calque-untold") as pool:
        return list(pool.map(look, rows))


def _tell(shared: Shared, trees: Trees, number: int, rows: Sequence[Row]) -> None:
    assert shared.journal is not None
    told = [row.under(trees.label) for row in rows]
    for row in told:
        shared.collector.add(row)
    shared.journal.settle_announced(number, told)


def _look(side: Side, path: str) -> Metadata | None:
    """What lies there, a link itself and not what it leads to; None where there is nothing."""
    service, key = side.service, side.key(path)
    try:
        return service.stat_link(key) if isinstance(service, Linking) else service.stat(key)
    except NotFound:
        return None
