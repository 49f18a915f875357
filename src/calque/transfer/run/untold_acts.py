"""What an earlier process has deleted or moved, and died before it could tell: told now.

It had announced that, some objects together, and no listing shows it any more. So each of them that
has no row is looked for by its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from calque.errors import NotFound
from calque.operator.service import Linking
from calque.transfer.model import Row
from calque.transfer.plan.plan import Trees
from calque.transfer.plan.side import Side
from calque.transfer.run.shared import Shared
from calque.values import Metadata


def tell_untold_acts(shared: Shared, trees: Sequence[Trees]) -> Shared:
    """Write the rows that are missing; what is given back knows them too.

    What is still where it was is none of them: it is listed again.
    """
    journal = shared.journal
    left = None if journal is None else journal.unfinished
    if journal is None or left is None or not left.announced:
        return shared
    untold = [
        (number, row)
        for number, rows in left.announced
        for row in rows
        # A page of a move is kept until the next note, in which its range may be over already.
        if (number, row.path) not in shared.known
        and (not shared.moves or left.holds(number, row.path))
    ]

    find = _find_moved if shared.moves else _find_deleted

    def look(act: tuple[int, Row]) -> Row | None:
        number, row = act
        return find(trees[number], row)

    told: dict[tuple[int, str], Row] = {}
    with ThreadPoolExecutor(shared.options.concurrent, "calque-untold") as pool:
        for (number, _), row in zip(untold, pool.map(look, untold), strict=True):
            if row is not None:
                told[number, row.path] = row
    rows = [row.under(trees[number].label) for (number, _), row in told.items()]
    for row in rows:
        shared.collector.add(row)
    journal.settle_announced(rows)
    return replace(shared, known={**shared.known, **told})


def _find_deleted(trees: Trees, row: Row) -> Row | None:
    return row if _look(trees.target, row.path) is None else None


def _find_moved(trees: Trees, row: Row) -> Row | None:
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


def _look(side: Side, path: str) -> Metadata | None:
    """What lies there, a link itself and not what it leads to; None where there is nothing."""
    service, key = side.service, side.key(path)
    try:
        return service.stat_link(key) if isinstance(service, Linking) else service.stat(key)
    except NotFound:
        return None
