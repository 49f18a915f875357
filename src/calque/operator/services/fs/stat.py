"""What a file is: its metadata, and the token that pins its bytes."""

from __future__ import annotations

import os
import stat as modes
from dataclasses import replace
from datetime import UTC, datetime

from calque.errors import IsADirectory, Unsupported
from calque.operator.services.fs.errors import map_lookup_errors
from calque.operator.services.fs.marker import refuse_reserved
from calque.operator.services.fs.root import Root
from calque.values import Metadata
from calque.values.file_attributes import LINK_TYPE

_from_timestamp, _from_listing = datetime.fromtimestamp, Metadata.from_listing
"""Found once: listings call them by the million."""
_TOKEN = "%x-%x-%x-%x"
"""See :func:`token`. Filled in half an f-string's time, and by a listing without a call."""


def stat(root: Root, path: str) -> Metadata:
    """The file's metadata; a symlink is followed as long as it stays beneath the root.

    A path that ends in ``/`` asks for a directory, which may be empty.
    """
    if path.endswith("/"):
        return _directory(root, path)
    key = root.key(path)
    refuse_reserved(key)
    shown = root.absolute(key)
    with map_lookup_errors(shown), root.hold_open(key, os.O_PATH) as descriptor:
        found = os.fstat(descriptor)
    check_regular(found, shown)
    return describe(key, found)


def _directory(root: Root, path: str) -> Metadata:
    key = root.directory_key(path)
    with map_lookup_errors(root.absolute(key)), root.hold_open(key, os.O_PATH | os.O_DIRECTORY):
        return Metadata(path=path, is_dir=True)


def check_regular(found: os.stat_result, path: str) -> None:
    """Only regular files are objects."""
    if modes.S_ISDIR(found.st_mode):
        raise IsADirectory(f"{path!r} is a directory; a file was needed")
    if not modes.S_ISREG(found.st_mode):
        raise Unsupported(f"{path!r} is a pipe, socket or device, not a file")


def describe(key: str, found: os.stat_result) -> Metadata:
    """A file as :class:`Metadata`."""
    modified = _from_timestamp(found.st_mtime, UTC)
    size = found.st_size
    pin = _TOKEN % (found.st_ino, size, found.st_mtime_ns, found.st_ctime_ns)
    return _from_listing(key, size, modified, token=pin)


def describe_link(key: str, found: os.stat_result) -> Metadata:
    """A link as :class:`Metadata`: an object whose bytes are the link's text."""
    return replace(describe(key, found), content_type=LINK_TYPE)


def token(found: os.stat_result) -> str:
    """Inode, size, mtime and ctime: it changes whenever the bytes or the file do.

    ctime is among them because mtime can be set back at will.
    """
    return _TOKEN % (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def modified_ns(entry: Metadata) -> int | None:
    """When a file was modified, in nanoseconds, out of its token: ``last_modified`` has fewer."""
    parts = (entry.token or "").split("-")
    try:
        return int(parts[2], 16) if len(parts) == 4 else None
    except ValueError:
        return None
