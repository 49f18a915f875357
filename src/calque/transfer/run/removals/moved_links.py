"""Links of a file system that are moved as what they lead to: they go before that does.

A move that follows links makes files of them. The file that one leads to is moved too, and from
then on the link leads nowhere. So all links of a tree are found and moved first, those that lead to
other links before these.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby

from calque.errors import CalqueError
from calque.transfer.model import Row
from calque.transfer.plan.plan import Trees
from calque.transfer.run.run_context import Shared
from calque.values.file_attributes import LINK_TYPE

_MOST_HOPS = 40
"""As many links as Linux follows, one leading to the next."""


def move_links(
    shared: Shared, trees: Trees, number: int, run: Callable[[Shared, Trees], None]
) -> Shared:
    """Move the links of a tree by ``run``, one round after the other.

    What is given back knows them all: they have their rows, whether they could be moved or not.
    """
    if not shared.moves or not trees.source.is_local or shared.options.dry_run:
        return shared
    if shared.options.links != "follow":
        return shared
    found = sorted(_find_links(trees), reverse=True)
    alone = replace(shared, journal=None)
    for _, several in groupby(found, key=lambda each: each[0]):
        paths = tuple(path for _, path in several)
        source, target = replace(trees.source, only=paths), replace(trees.target, only=paths)
        with _announced(shared, number, paths):
            run(alone, replace(trees, source=source, target=target))
    told = {(number, path): Row(path=path, outcome="copied", rule="kind") for _, path in found}
    return replace(shared, known={**shared.known, **told}) if told else shared


@contextmanager
def _announced(shared: Shared, number: int, paths: Sequence[str]) -> Iterator[None]:
    journal = shared.journal
    if journal is None:
        yield
        return
    rows = [Row(path=path, outcome="copied", rule="new") for path in paths]
    acts = journal.announce(number, rows)
    yield
    with journal.lock:
        journal.settle_acts(acts, ())


def _find_links(trees: Trees) -> Iterator[tuple[int, str]]:
    """Links that are taken for files, by how many links it takes to come to the file."""
    source, root = trees.source, _root(trees)
    if source.only is None:
        entries = replace(source, links=True).entries(trees.listed)
        paths = (path for path, entry in entries if entry.content_type == LINK_TYPE)
    else:
        paths = (path for path in source.only if os.path.islink(f"{root}/{path}"))
    for path in paths:
        if not trees.takes_path(path):
            continue
        try:
            leads_to = source.service.stat(source.key(path))
        except CalqueError:
            continue  # out of the tree or nowhere: it is told by the listing, and stays
        if not leads_to.is_dir:
            yield _count_hops(f"{root}/{path}"), path


def _count_hops(link: str) -> int:
    hops = 0
    while os.path.islink(link) and hops < _MOST_HOPS:
        link, hops = os.path.join(os.path.dirname(link), os.readlink(link)), hops + 1
    return hops


def _root(trees: Trees) -> str:
    return trees.source.service.location("").removeprefix("file://")
