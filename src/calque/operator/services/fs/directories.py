"""Directories made and removed; symlinks are never followed out of the one that is removed."""

from __future__ import annotations

import errno
import os
import stat as modes
from contextlib import suppress

from calque.operator.services.fs.errors import map_errors
from calque.operator.services.fs.root import Root

_OPENED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_STAYS = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""Somebody writes there, has removed it already, or it is no directory of its own."""


def create_dir(root: Root, path: str, *, durable: bool) -> None:
    """Make a directory and what is missing above it, each fsynced into its parent."""
    key = root.directory_key(path)
    with map_errors(root.absolute(key)):
        os.close(root.open_directory(key, make=True, durable=durable))


def remove_empty(root: Root, path: str) -> None:
    """Remove a directory and those below it, as far as nothing but symlinks is in them.

    A listing leaves out links that dangle, loop or lead to directories: they go here, themselves
    and never what they name. A path that ends in ``/`` means what lies behind a link, not the link.
    """
    key = root.directory_key(path)
    above, _, name = key.rpartition("/")
    with map_errors(root.absolute(key)), suppress(FileNotFoundError, NotADirectoryError):
        parent = root.open_directory(above)
        try:
            if path.endswith("/") or not _unlink_symlink(parent, name):
                _remove(parent, name)
        finally:
            os.close(parent)


def remove_folder(root: Root, path: str) -> bool:
    """Remove one directory if it is empty; whether it went. Those below it are left alone."""
    key = root.directory_key(path)
    above, _, name = key.rpartition("/")
    with map_errors(root.absolute(key)):
        try:
            parent = root.open_directory(above)
        except (FileNotFoundError, NotADirectoryError):
            return False
        try:
            os.rmdir(name, dir_fd=parent)
        except OSError as error:
            if error.errno in _STAYS:
                return False
            raise
        finally:
            os.close(parent)
    return True


def _may_go(entry: os.DirEntry[str]) -> bool:
    return entry.is_symlink() or entry.is_dir(follow_symlinks=False)


def _unlink_symlink(parent: int, name: str) -> bool:
    """Remove a symlink; False where it is none."""
    with suppress(FileNotFoundError):
        if not modes.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            return False
        os.unlink(name, dir_fd=parent)
    return True


def _remove(parent: int, name: str) -> None:
    try:
        opened = os.open(name, _OPENED, dir_fd=parent)
    except OSError as error:
        if error.errno in _STAYS:
            return
        raise
    try:
        with os.scandir(opened) as entries:
            below = [(entry.name, entry.is_symlink()) for entry in entries if _may_go(entry)]
        for each, is_link in below:
            if not (is_link and _unlink_symlink(opened, each)):
                _remove(opened, each)
    finally:
        os.close(opened)
    try:
        os.rmdir(name, dir_fd=parent)
    except OSError as error:
        if error.errno not in _STAYS:
            raise
