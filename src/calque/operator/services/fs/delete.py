"""A file removed for good."""

from __future__ import annotations

import os
import stat as modes
from contextlib import suppress

from calque.errors import Unsupported
from calque.operator.options import DeleteOptions
from calque.operator.services.fs.errors import map_errors
from calque.operator.services.fs.marker import refuse_reserved
from calque.operator.services.fs.root import Root
from calque.operator.services.fs.stat import check_regular


def delete(root: Root, path: str, options: DeleteOptions, *, durable: bool) -> None:
    """Remove the file, or the symlink itself; one that is not there is no error."""
    key = root.key(path)
    refuse_reserved(key)
    if options.if_match is not None:
        raise Unsupported(f"{path!r}: a file system cannot delete a file only if it is unchanged")
    if options.version is not None:
        raise Unsupported(f"{path!r}: a file system keeps no versions")
    shown = root.absolute(key)
    with map_errors(shown), suppress(FileNotFoundError, NotADirectoryError):
        directory = root.open_directory(key.rpartition("/")[0])
        try:
            _unlink(directory, key.rpartition("/")[2], shown)
            if durable:
                os.fsync(directory)
        finally:
            os.close(directory)


def _unlink(directory: int, name: str, shown: str) -> None:
    found = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if not modes.S_ISLNK(found.st_mode):
        check_regular(found, shown)
    # A directory that takes the name meanwhile is safe: unlink(2) removes none.
    os.unlink(name, dir_fd=directory)
