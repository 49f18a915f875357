"""Temporary files that killed copies left."""

from __future__ import annotations

import os
import stat as modes
from collections.abc import Iterator
from datetime import UTC, datetime

from calque.errors import CalqueError, ConditionNotMatch, InvalidInput
from calque.operator.service import Leftover
from calque.operator.services.fs.errors import map_errors
from calque.operator.services.fs.marker import is_temporary, target_of
from calque.operator.services.fs.root import Root
from calque.operator.services.fs.temporary import lock

KIND = "temporary file"

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY
_PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


def list_leftovers(root: Root, prefix: str) -> Iterator[Leftover]:
    """Temporary files under a prefix that no living process holds. Symlinks are not followed.

    The prefix is one of targets, as on every service, and not of the temporary files' own names.

    ``started`` is when the file was last written to: a copy that is under way on another machine,
    whose lock cannot be seen, is never old. What may not be read does not keep the rest from being
    found: its error is raised at the end.
    """
    above, _, start = prefix.rpartition("/")
    base = root.directory_key(above)
    waiting: list[str] = [base]
    failed: CalqueError | None = None
    while waiting:
        directory = waiting.pop()
        try:
            entries = _entries(root, directory)
        except CalqueError as error:
            failed = failed or error
            continue
        for name, is_directory in entries:
            key = f"{directory}/{name}" if directory else name
            if directory == base and not target_of(name).startswith(start):
                continue
            if is_directory:
                waiting.append(key)
                continue
            try:
                found = _stat_abandoned(root, key) if is_temporary(name) else None
            except CalqueError as error:
                failed = failed or error
                continue
            if found is not None:
                yield Leftover(
                    location=f"file://{root.absolute(target_of(key))}",
                    kind=KIND,
                    id=key,
                    started=datetime.fromtimestamp(found.st_mtime, UTC),
                    size=found.st_blocks * 512,
                )
    if failed is not None:
        raise failed


def remove_leftover(root: Root, leftover: Leftover) -> None:
    """Remove it, unless a process took it up again meanwhile; one that is gone is no error."""
    key = root.key(leftover.id)
    directory, _, name = key.rpartition("/")
    if not is_temporary(name):
        raise InvalidInput(f"{leftover.id!r} is no temporary file of calque; it was not touched")
    with map_errors(root.absolute(key)):
        try:
            with (
                root.hold_open(directory, _DIRECTORY) as parent,
                root.hold_open(key, _PLAIN) as held,
            ):
                if not lock(held):
                    raise ConditionNotMatch(f"{leftover.id!r} is in use; it was not touched")
                os.unlink(name, dir_fd=parent)  # while held, so that nobody can resume it
        except FileNotFoundError:
            return


def _entries(root: Root, directory: str) -> list[tuple[str, bool]]:
    """Names of what may matter here: directories and our temporary files."""
    with map_errors(root.absolute(directory)):
        try:
            descriptor = root.open(directory, _DIRECTORY)
        except (FileNotFoundError, NotADirectoryError):
            return []
        try:
            with os.scandir(descriptor) as entries:
                return [
                    (entry.name, is_directory)
                    for entry in entries
                    if (is_directory := entry.is_dir(follow_symlinks=False))
                    or is_temporary(entry.name)
                ]
        finally:
            os.close(descriptor)


def _stat_abandoned(root: Root, key: str) -> os.stat_result | None:
    """What the file is; None when it is held by a living process, is no plain file, or is gone."""
    with map_errors(root.absolute(key)):
        try:
            with root.hold_open(key, _PLAIN) as descriptor:
                found = os.fstat(descriptor)
                # A lock that we get says that no living process of this machine writes there.
                free = modes.S_ISREG(found.st_mode) and lock(descriptor)
                return found if free else None
        except FileNotFoundError:
            return None
