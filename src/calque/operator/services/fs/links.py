"""Symbolic links as what they are: their text read, and a link made of one."""

from __future__ import annotations

import os
import stat as modes

from calque.errors import PathEscape
from calque.operator.services.fs.errors import map_errors, map_lookup_errors
from calque.operator.services.fs.marker import new_name, refuse_reserved
from calque.operator.services.fs.root import Root
from calque.operator.services.fs.stat import check_regular, describe_link
from calque.values import Metadata


def read_link(root: Root, path: str) -> bytes:
    """The text of a link, which may lead anywhere."""
    key = root.key(path)
    above, _, name = key.rpartition("/")
    with map_lookup_errors(root.absolute(key)):
        directory = root.open_directory(above)
        try:
            return os.fsencode(os.readlink(name, dir_fd=directory))
        finally:
            os.close(directory)


def stat_link(root: Root, path: str) -> Metadata:
    """The link itself, as a listing that keeps links shows it; NotFound where there is none."""
    key = root.key(path)
    above, _, name = key.rpartition("/")
    with map_lookup_errors(root.absolute(key)):
        directory = root.open_directory(above)
        try:
            found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        finally:
            os.close(directory)
    return describe_link(key, found)


def make_link(
    root: Root, path: str, text: bytes, *, modified: int | None = None, unsafe: bool = False
) -> Metadata:
    """A link in one moment, in place of what was there; PathEscape where it would lead out."""
    check_link(root, path, text, unsafe=unsafe)
    key = root.key(path)
    above, _, name = key.rpartition("/")
    with map_errors(root.absolute(key)):
        directory = root.open_directory(above, make=True, durable=False)
        fresh = new_name(name)
        try:
            os.symlink(text, os.fsencode(fresh), dir_fd=directory)
            try:
                if modified is not None:
                    times = (modified, modified)
                    os.utime(fresh, ns=times, dir_fd=directory, follow_symlinks=False)
                os.rename(fresh, name, src_dir_fd=directory, dst_dir_fd=directory)
            except BaseException:
                os.unlink(fresh, dir_fd=directory)
                raise
            os.fsync(directory)
            return describe_link(key, os.stat(name, dir_fd=directory, follow_symlinks=False))
        finally:
            os.close(directory)


def check_link(root: Root, path: str, text: bytes, *, unsafe: bool = False) -> None:
    """Raise what a link of that text could not be made for."""
    key = root.key(path)
    refuse_reserved(key)
    _check_place(root, key)
    if not unsafe and _leaves(root, key, os.fsdecode(text)):
        raise PathEscape(
            f"the link {key!r} would lead out of the tree, to {os.fsdecode(text)!r}",
            hint="With --links unsafe it is made all the same.",
        )


def _check_place(root: Root, key: str) -> None:
    """Links take the place of files and of other links, never of a folder or a device."""
    with map_errors(root.absolute(key)):
        try:
            with root.hold_open(key, os.O_PATH | os.O_NOFOLLOW) as descriptor:
                found = os.fstat(descriptor)
        except FileNotFoundError:
            return
        if not modes.S_ISLNK(found.st_mode):
            check_regular(found, root.absolute(key))


def _leaves(root: Root, key: str, text: str) -> bool:
    """Whether it may lead out, not by what lies there now but by its words: what they lead to later
    must be beneath too.

    Upwards go only its first words, from the folder that it really lies in: behind a name, which
    may be a link itself, ``..`` is the folder above wherever that one leads.
    """
    if text.startswith("/") or not text or "\0" in text:
        return True
    parts = [part for part in text.split("/") if part not in ("", ".")]
    upwards = next((at for at, part in enumerate(parts) if part != ".."), len(parts))
    folder = os.path.realpath(root.absolute(key.rpartition("/")[0]))
    above = os.path.relpath(folder, os.path.realpath(root.path)).split("/")
    depth = 0 if above == ["."] else len(above)
    return ".." in above or upwards > depth or ".." in parts[upwards:]
