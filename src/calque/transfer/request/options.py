"""What is asked of a transfer: frozen, checked when it is made; nothing is opened here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from calque.errors import InvalidInput
from calque.transfer.request.filters import Filters
from calque.values import MIB

Kind = Literal["cp", "sync", "mv", "rm"]
By = Literal["listing", "size", "checksum", "download"]
"""By what the listings say (checksums where both have one, else sizes); by sizes alone; by
checksums, asked of the servers and made of local files; by the bytes of both."""
Compare = Literal["default", "size", "time", "checksum", "always", "never"]
Links = Literal["follow", "keep", "unsafe"]
Fsync = Literal["each", "batch", "none"]
OnError = Literal["continue", "stop"]
OnCollision = Literal["refuse", "rename"]

SPLIT_OVER = 1024 * MIB

_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%")
_FREE = 100
"""A target with no more objects than this is not guarded by a share of it."""


@dataclass(frozen=True, slots=True)
class MaxDelete:
    """How many objects a run may delete: a number, or a share of those that the target has."""

    number: int | None = None
    share: float | None = 50.0
    asked: bool = False
    """Whether somebody has chosen it."""

    @classmethod
    def parse(cls, text: str) -> MaxDelete:
        """Read ``1000`` or ``10%``."""
        if found := _SHARE.fullmatch(text.strip()):
            share = float(found[1])
            if share <= 100:
                return cls(None, share, asked=True)
        elif text.strip().isdecimal():
            return cls(int(text), None, asked=True)
        raise InvalidInput(f"{text!r} is no bound on deletes", hint="For example 1000 or 10%.")

    def allows(self, count: int, of: int) -> bool:
        """Whether so many of the target's objects may be deleted."""
        if self.number is not None:
            return count <= self.number
        # A percentage that the user gave always applies; the default does not apply to small trees.
        if not self.asked and of <= _FREE:
            return True
        return count <= of * (self.share or 0.0) / 100

    def __str__(self) -> str:
        return str(self.number) if self.number is not None else f"{self.share:g} %"


_CHOICES = {
    "compare": Compare,
    "fsync": Fsync,
    "on_error": OnError,
    "on_collision": OnCollision,
    "links": Links,
}
_PACE = (
    "concurrent",
    "rate",
    "bandwidth",
    "on_error",
    "fsync",
    "chunk",
    "verify",
    "space_check",
    "split_over",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeOptions:
    """How trees are copied, compared and cleared."""

    filters: Filters = field(default_factory=Filters)
    compare: Compare = "default"
    download: bool = False
    """To compare checksums, read both objects where no checksum that is told is in common."""
    delete: bool = False
    """Delete at the target what the source does not have."""
    delete_all: bool = False
    """Do so even where the source has nothing at all."""
    delete_excluded: bool = False
    """Delete at the target what filters exclude, too."""
    track_renames: bool = False
    """Copy what is new from an object of the target with the same bytes that is to be deleted."""
    max_delete: MaxDelete = field(default_factory=MaxDelete)
    backup_to: str | None = None
    """What is overwritten or deleted is first kept below this folder, in the same layout."""
    if_not_exists: bool = False
    """Never overwrite: a target that is there and differs is an error of its own."""
    concurrent: int = 16
    """Requests in flight at once, over the whole tree, parts included."""
    rate: float | None = None
    """Requests a second, at most; None: as many as the servers bear."""
    bandwidth: int | None = None
    """Bytes a second that pass through the client, at most."""
    on_error: OnError = "continue"
    dry_run: bool = False
    fold_case: bool = False
    """Refuse paths that differ in case only, also where the target tells them apart."""
    on_collision: OnCollision = "refuse"
    """Of paths that differ in case only, refuse all, or give all but one a suffix."""
    space_check: bool = True
    """Refuse what a local target has no room for, before it is begun."""
    verify: bool = False
    """Look at every copied target once more at the end, in a fresh listing."""
    fsync: Fsync = "batch"
    content_type: str | None = None
    carry_tags: bool = True
    carry_class: bool = False
    chunk: int | None = None
    links: Links = "follow"
    """Links: what they lead to inside the tree; kept as links that stay inside; or any links."""
    modes: bool = False
    """Give files that are made of objects the mode that the objects keep."""
    owner: bool = False
    """Keep owners of files in objects, and give them to files that are made of them."""
    folders: bool = False
    """Keep empty folders of a file system as markers (``name/``) in an object service."""
    files_from: tuple[str, ...] | None = None
    """Only these paths below the source; nothing else is listed."""
    as_reported: bool = False
    """They are those of a report: of several sources each begins with the name of its own."""
    spark: object = None
    """A master's URL or a session: ranges are copied there, not by threads of this process."""
    split_over: int = SPLIT_OVER
    """On a cluster a larger object is copied by several tasks, each some of its parts."""
    shared_fs: bool = False
    """Every executor sees the local folders that are named."""
    journal: bool = True
    """Note progress in the ledger, so that the run can be resumed."""
    restart: bool = False
    """Begin anew where an earlier run over the same trees was left unfinished."""
    globs: bool = True
    """``*``, ``?``, ``[`` and ``{`` in a source mean something."""

    def __post_init__(self) -> None:
        for name, kind in _CHOICES.items():
            if getattr(self, name) not in get_args(kind):
                raise InvalidInput(
                    f"{name} cannot be {getattr(self, name)!r}",
                    hint=f"One of {', '.join(get_args(kind))}.",
                )
        if isinstance(self.concurrent, bool) or not isinstance(self.concurrent, int):
            raise InvalidInput(f"concurrent must be a whole number, not {self.concurrent!r}")
        if self.concurrent < 1:
            raise InvalidInput(f"concurrent must be at least 1, not {self.concurrent}")
        for name in ("rate", "bandwidth", "split_over"):
            bound = getattr(self, name)
            if bound is not None and not bound > 0:
                raise InvalidInput(f"{name} must be above 0, not {bound}")
        if self.download and self.compare != "checksum":
            raise InvalidInput(
                "download says how checksums are compared",
                hint="With --compare checksum, or not at all.",
            )
        if not self.delete and (self.delete_all or self.delete_excluded):
            raise InvalidInput(
                "delete_all and delete_excluded say what delete may do, which was not asked for"
            )
        if self.track_renames and not self.delete:
            raise InvalidInput(
                "track_renames is about names that are deleted, and no delete was asked for",
                hint="Say --delete too.",
            )
        if self.delete and self.files_from is not None:
            raise InvalidInput("delete needs the whole of both trees, files_from names a part")

    def pace(self) -> dict[str, Any]:
        """How it runs, which a resume may choose anew."""
        return {name: getattr(self, name) for name in _PACE}

    @classmethod
    def from_json(cls, told: Mapping[str, Any], pace: Mapping[str, Any]) -> TreeOptions:
        """The options of a job; see :meth:`to_json` and :meth:`pace`."""
        given = {**told, **pace}
        given["filters"] = Filters.from_json(told["filters"])
        most = told["max_delete"]
        given["max_delete"] = MaxDelete() if most is None else MaxDelete.parse(most)
        if told["files_from"] is not None:
            given["files_from"] = tuple(told["files_from"])
        return cls(**given)

    def to_json(self) -> dict[str, Any]:
        """What makes a run what it is, for its journal: no secret, nothing that only paces it."""
        told = {
            name: getattr(self, name)
            for name in (
                "compare",
                "download",
                "delete",
                "delete_all",
                "delete_excluded",
                "if_not_exists",
                "content_type",
                "carry_tags",
                "carry_class",
                "folders",
                "fold_case",
                "on_collision",
                "track_renames",
                "backup_to",
                "links",
                "modes",
                "owner",
                "globs",
            )
        }
        return {
            **told,
            "filters": self.filters.to_json(),
            "max_delete": str(self.max_delete) if self.max_delete.asked else None,
            "files_from": None if self.files_from is None else list(self.files_from),
            **({"as_reported": True} if self.as_reported else {}),
        }
