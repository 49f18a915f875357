"""A move: one rename where the service has that, else a copy and then a delete.

Some servers take two keys for one object: they collapse ``//``, drop a leading ``/``, fold case or
unicode forms. A copy between two such keys changes nothing, and the delete after it would take the
only object there is. So the source is deleted only once it is seen that it and the target are two.
"""

from __future__ import annotations

import time
from dataclasses import replace

from calque.errors import ConditionNotMatch, IsSameFile, Unsupported
from calque.operator import paths
from calque.operator.copy import start_copy
from calque.operator.options import CopyOptions, DeleteOptions
from calque.operator.service import PrefixMoving, Prepared, Renaming, Service
from calque.values import Metadata

_TICK = 1.1
"""Services tell times in whole seconds: a copy made this much later bears another time."""


def move_object(
    origin: Service, source: str, into: Service, target: str, options: CopyOptions
) -> Metadata:
    """Move one object and return the target's metadata; the source is deleted last."""
    paths.file_path(source, "move")
    paths.file_path(target, "move to")
    if isinstance(origin, Renaming):
        renamed = rename_at_once(origin, origin.stat(source), into, target, options)
        if renamed is not None:
            return renamed
    copier = start_copy(origin, source, into, target, options)
    made = copier.run()
    delete_moved(origin, copier.source, into, target, options)
    return made


def rename_at_once(
    origin: Service, found: Metadata, into: Service, target: str, options: CopyOptions
) -> Metadata | None:
    """The move as one rename; None where the service has none, or cannot between these two."""
    if not isinstance(origin, Renaming) or origin.scheme != into.scheme:
        return None
    if options.if_match is not None or options.source_if_match not in (None, found.pin):
        return None  # kept, or refused, by the copy
    try:
        return origin.rename(found, target, if_not_exists=options.if_not_exists, into=into)
    except Unsupported:
        return None


def move_prefix(
    origin: Service,
    prefix: str,
    into: Service,
    target: str,
    copy: bool,
    overwrite: bool,
    progress: Prepared | None,
) -> int:
    """Everything below a prefix moved (or copied) at once, by a service that can."""
    if not isinstance(origin, PrefixMoving):
        raise Unsupported(
            f"{origin.scheme} cannot copy or move a prefix in one step",
            hint="Copy or move the objects below it one by one.",
        )
    return origin.move_prefix(
        paths.valid_path(prefix),
        paths.valid_path(target),
        into=into,
        copy=copy,
        overwrite=overwrite,
        progress=progress,
    )


def delete_moved(
    origin: Service, copied: Metadata, into: Service, target: str, options: CopyOptions
) -> None:
    """Delete the source of a finished copy, if it is unchanged and the target is another object.

    Two objects that look alike (the same bytes, made in the same second) are told apart by copying
    once more, a second later. IsSameFile: they still look like one, and nothing was deleted.
    """
    if not _are_two(origin, copied, into, target):
        time.sleep(_TICK)
        _copy_again(origin, copied, into, target, options)
        if not _are_two(origin, copied, into, target):
            raise IsSameFile(
                f"{origin.location(copied.path)} and {into.location(target)} cannot be told "
                "apart: the server may take both names for one object",
                hint="Nothing was deleted. If they are two, delete the source by itself.",
            )
    _delete_pinned(origin, copied)


def _are_two(origin: Service, copied: Metadata, into: Service, target: str) -> bool:
    """Whether one object could not look like both.

    Looked at three times: an object that somebody writes anew between two looks, with the same
    bytes, looks like two. One that looked the same before and after did not change between.
    """
    before = origin.stat(copied.path)
    there = into.stat(target)
    after = origin.stat(copied.path)
    _refuse_changed(origin, copied, before)
    _refuse_changed(origin, before, after)
    if _looks(before) != _looks(after):
        return False
    if origin.scheme == into.scheme:
        return _looks(before) != _looks(there)
    # Two services name bytes each in its own way, but may well serve the same files.
    times = [
        each.last_modified.replace(microsecond=0)
        for each in (before, there)
        if each.last_modified is not None
    ]
    return len(times) == 2 and times[0] != times[1]


def _looks(found: Metadata) -> tuple[object, ...]:
    return found.etag, found.version, found.token, found.last_modified


def _copy_again(
    origin: Service, copied: Metadata, into: Service, target: str, options: CopyOptions
) -> None:
    """Over our own copy only: a condition sees to it, where the service has one."""
    can = into.capability
    conditional = can.copy_with_if_match or can.write_with_if_match
    again = replace(
        options,
        if_not_exists=False,
        if_match=into.stat(target).pin if conditional else None,
        source_if_match=copied.pin,
        stream=options.stream or "auto",
    )
    start_copy(origin, copied.path, into, target, again).run()


def _delete_pinned(origin: Service, copied: Metadata) -> None:
    """Delete what was copied, and nothing newer."""
    if origin.capability.delete_with_if_match:
        origin.delete(copied.path, DeleteOptions(if_match=copied.pin))
        return
    # As near as such a service lets us come: a change in the moment between the two is not seen.
    _refuse_changed(origin, copied, origin.stat(copied.path))
    origin.delete(copied.path, DeleteOptions())


def _refuse_changed(origin: Service, copied: Metadata, now: Metadata) -> None:
    known = copied.version is not None and now.version is not None
    if now.pin != copied.pin or (known and now.version != copied.version):
        raise ConditionNotMatch(
            f"{origin.location(copied.path)} changed after it was copied, so it was not deleted",
            hint="The target holds the old content. Move it again for the new one.",
        )
