"""The keywords of ``copy_tree`` and ``sync_tree``, and how they become options."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypedDict

from calque.errors import InvalidInput
from calque.transfer.request.filters import Filters, Rule
from calque.transfer.request.options import (
    Compare,
    Fsync,
    Kind,
    Links,
    MaxDelete,
    OnCollision,
    OnError,
    TreeOptions,
)


class TreeKeywords(TypedDict, total=False):
    """The fields of :class:`~.options.TreeOptions`, and filters by their parts."""

    include: Sequence[str]
    exclude: Sequence[str]
    rules: Sequence[Rule]
    """Includes and excludes in an order of their own; instead of the two above."""
    min_size: int
    max_size: int
    newer_than: datetime
    older_than: datetime
    storage_classes: Sequence[str]
    compare: Compare
    download: bool
    delete: bool
    delete_all: bool
    delete_excluded: bool
    max_delete: int | str
    if_not_exists: bool
    concurrent: int
    rate: float | None
    bandwidth: int | None
    on_error: OnError
    dry_run: bool
    fold_case: bool
    on_collision: OnCollision
    track_renames: bool
    space_check: bool
    verify: bool
    fsync: Fsync
    content_type: str | None
    carry_tags: bool
    carry_class: bool
    chunk: int | None
    folders: bool
    backup_to: str | None
    links: Links
    modes: bool
    owner: bool
    files_from: Sequence[str] | None
    globs: bool
    spark: object
    split_over: int
    shared_fs: bool
    journal: bool
    restart: bool


_FILTERS = ("min_size", "max_size", "newer_than", "older_than")


def options_from(kind: Kind, keywords: TreeKeywords) -> TreeOptions:
    """Options out of keywords; InvalidInput for one that is unknown or out of place."""
    given: dict[str, Any] = dict(keywords)
    for name in given:
        if name not in TreeKeywords.__annotations__:
            raise InvalidInput(
                f"there is no option {name!r}",
                hint=f"Options: {', '.join(sorted(TreeKeywords.__annotations__))}.",
            )
    if kind != "sync" and given.get("delete"):
        raise InvalidInput(f"{kind} deletes nothing at its target", hint="sync can, when told.")
    filters = _filters(given)
    most = given.pop("max_delete", None)
    if most is not None:
        given["max_delete"] = MaxDelete.parse(str(most))
    if given.get("files_from") is not None:
        given["files_from"] = tuple(given["files_from"])
    return TreeOptions(filters=filters, **given)


def _filters(given: dict[str, Any]) -> Filters:
    include, exclude = given.pop("include", ()), given.pop("exclude", ())
    for name, value in (("include", include), ("exclude", exclude)):
        if isinstance(value, str):
            raise InvalidInput(f"{name} is a list of patterns, not one text: [{value!r}]")
    rules = tuple(given.pop("rules", ()))
    if rules and (include or exclude):
        raise InvalidInput("rules stand instead of include and exclude, not beside them")
    # What is included is taken out of what is excluded, so it is asked first.
    rules = rules or (
        *(Rule.include(each) for each in include),
        *(Rule.exclude(each) for each in exclude),
    )
    limits = {name: given.pop(name) for name in _FILTERS if name in given}
    classes = frozenset(given.pop("storage_classes", ()))
    return Filters(rules=rules, storage_classes=classes, **limits)
