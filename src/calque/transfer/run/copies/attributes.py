"""Files that become objects, and back: times, modes, owners and content types go along.

An object keeps them in one value of its user metadata (``calquefile``). A file that is made of it
gets its time back, its mode and its owners only where that is asked for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from calque.operator.service import Attributed, Service
from calque.transfer.plan.side import Side
from calque.transfer.request.options import TreeOptions
from calque.transfer.run.copies.content_types import guess_type
from calque.values import Metadata
from calque.values.file_attributes import LINK_TYPE, USER_KEY, FileAttributes


class FilesAsObjects:
    """A file system whose files tell by ``stat`` what an object made of them is to keep.

    Everything else is the service's own.
    """

    def __init__(self, service: Service, options: TreeOptions) -> None:
        self._service = service
        self._options = options

    def __getattr__(self, name: str) -> Any:
        return getattr(self._service, name)

    def stat(self, path: str, *, version: str | None = None) -> Metadata:
        return self.describe(self._service.stat(path, version=version))

    def describe(self, entry: Metadata) -> Metadata:
        """An entry of a listing with what it is to keep."""
        given = self._options.content_type or entry.content_type or guess_type(entry.path)
        kept = attributes_of(self._service, entry.path)
        if not self._options.owner:
            kept = replace(kept, uid=None, gid=None)
        return replace(entry, content_type=given, user={**entry.user, USER_KEY: kept.to_text()})


def describe_link(entry: Metadata) -> Metadata:
    """A link of a listing with what an object that stands for it keeps: when it was made."""
    kept = FileAttributes(mtime=exact_mtime(entry))
    return replace(entry, user={USER_KEY: kept.to_text()})


def exact_mtime(entry: Metadata) -> int | None:
    """When a file was modified, in nanoseconds, out of its token."""
    parts = (entry.token or "").split("-")
    return int(parts[2], 16) if len(parts) == 4 else None


def carries_attributes(source: Side, target: Side) -> bool:
    """Whether files become objects that can keep what they are."""
    return source.is_local and target.service.capability.user_metadata


def attributes_of(service: Service, path: str) -> FileAttributes:
    """What the service keeps of a file; nothing where it keeps none."""
    return service.attributes(path) if isinstance(service, Attributed) else FileAttributes()


def wanted_attributes(source: Service, entry: Metadata, options: TreeOptions) -> FileAttributes:
    """What a file gets that is made of an object or of another file.

    Of a file its mode comes along, as with ``cp``; that of an object only with ``modes``. Bits that
    let a program run as another are left out unless owners are kept too.
    """
    local = isinstance(source, Attributed)
    if entry.content_type == LINK_TYPE or not local:
        told = FileAttributes.of_user(entry.user)
    else:
        told = attributes_of(source, entry.path)
    mode = told.mode if local or options.modes else None
    if mode is not None and not options.owner:
        mode &= 0o777
    return FileAttributes(
        mtime=_modified_ns(entry) if local or told.mtime is None else told.mtime,
        mode=mode,
        uid=told.uid if options.owner else None,
        gid=told.gid if options.owner else None,
    )


def _modified_ns(entry: Metadata) -> int | None:
    """When an object was modified, in nanoseconds, as finely as its entry tells."""
    exact = exact_mtime(entry)
    if exact is not None or entry.last_modified is None:
        return exact
    return round(entry.last_modified.timestamp() * 1_000_000) * 1000
