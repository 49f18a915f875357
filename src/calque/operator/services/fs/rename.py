"""A file renamed: what a move within one file system is."""

from __future__ import annotations

import errno
import os
import stat as modes
from contextlib import ExitStack

from calque.errors import ConditionNotMatch, IsSameFile, Unsupported
from calque.operator.services.fs.errors import map_errors
from calque.operator.services.fs.marker import refuse_reserved
from calque.operator.services.fs.root import Root
from calque.operator.services.fs.stat import describe, token
from calque.operator.services.fs.temporary import move_no_replace
from calque.operator.services.fs.write import target_status
from calque.values import Metadata


def rename(
    root: Root, source: Metadata, target: str, *, into: Root, if_not_exists: bool, durable: bool
) -> Metadata:
    """Give the pinned file another name in one moment; the target's metadata.

    Raises Unsupported, with nothing changed, where a rename cannot do it: another file system, or
    a symlink (whose target would stay behind). Two hard links of one file are IsSameFile, because
    rename(2) would say yes and do nothing.
    """
    old, new = root.key(source.path), into.key(target)
    refuse_reserved(old)
    refuse_reserved(new)
    with map_errors(into.absolute(new)), ExitStack() as held:
        target_status(into, new)
        old_directory = root.open_directory(old.rpartition("/")[0])
        held.callback(os.close, old_directory)
        found = _stat_pinned(old_directory, source, root.absolute(old))
        directory = into.open_directory(new.rpartition("/")[0], make=True, durable=durable)
        held.callback(os.close, directory)
        # rename(2) of two links to one file does nothing and reports success.
        _refuse_same(found, directory, new)
        _move(old_directory, old, directory, new, if_not_exists)
        if durable:
            # The new name first: a crash between the two may leave both names, never none.
            os.fsync(directory)
            os.fsync(old_directory)
        return describe(new, os.stat(new.rpartition("/")[2], dir_fd=directory))


def _stat_pinned(directory: int, source: Metadata, shown: str) -> os.stat_result:
    with map_errors(shown):
        found = os.stat(os.path.basename(shown), dir_fd=directory, follow_symlinks=False)
    if not modes.S_ISREG(found.st_mode):
        raise Unsupported(f"{shown!r} is not a plain file and cannot be renamed")
    if token(found) != source.token:
        raise ConditionNotMatch(f"{shown!r} has changed since it was looked at")
    return found


def _refuse_same(found: os.stat_result, directory: int, key: str) -> None:
    try:
        there = os.stat(key.rpartition("/")[2], dir_fd=directory)
    except OSError:
        return
    if os.path.samestat(found, there):
        raise IsSameFile(f"{key!r} is the same file already; nothing was done")


def _move(old_directory: int, old: str, directory: int, new: str, if_not_exists: bool) -> None:
    names = old.rpartition("/")[2], new.rpartition("/")[2]
    try:
        if if_not_exists:
            move_no_replace(old_directory, names[0], directory, names[1])
        else:
            os.rename(*names, src_dir_fd=old_directory, dst_dir_fd=directory)
    except FileExistsError as error:
        raise ConditionNotMatch(f"{new!r} exists already; it was left as it is") from error
    except OSError as error:
        if error.errno == errno.EXDEV:
            raise Unsupported(f"{new!r} lies on another file system than {old!r}") from error
        raise
