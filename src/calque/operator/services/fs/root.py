"""One directory as the root of every path, and how paths are opened beneath it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from calque.errors import InvalidInput, IsADirectory, PathEscape
from calque.operator.services.fs import syscalls

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_MOST_LINKS = 40


@dataclass(frozen=True, slots=True)
class Root:
    """An absolute directory. It is opened for each call, so it pickles and may be replaced."""

    path: str

    def key(self, path: str) -> str:
        """A path in its one spelling: no ``.``, ``..``, doubled or leading slashes.

        Raises PathEscape when ``..`` climbs out, IsADirectory when no file can be meant.
        """
        if not path or path.endswith("/"):
            raise IsADirectory(f"{path!r} names a directory; a file was needed")
        parts = _split_path(path)
        if not parts or path.rsplit("/", 1)[-1] in (".", ".."):
            raise IsADirectory(f"{path!r} names a directory; a file was needed")
        return "/".join(parts)

    def directory_key(self, path: str) -> str:
        """Like :meth:`key` for a directory; the root itself is ``""``."""
        return "/".join(_split_path(path))

    def absolute(self, key: str) -> str:
        """The path as the system knows it, and as messages show it."""
        if not key:
            return self.path
        return f"{self.path}/{key}" if self.path != "/" else f"/{key}"

    def open(self, key: str, flags: int, mode: int = 0) -> int:
        """Open a key; EXDEV when a symlink leads out of the root."""
        root = os.open(self.path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return self._open_from(root, key or ".", flags, mode)
        finally:
            os.close(root)

    def _open_from(self, root: int, path: str, flags: int, mode: int) -> int:
        if self.path == "/":  # nothing lies outside, and absolute symlinks are as good as others
            return os.open(path, flags | os.O_CLOEXEC, mode, dir_fd=root)
        if syscalls.has_open_beneath():
            try:
                return syscalls.open_beneath(root, path, flags, mode)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                # The system refuses every absolute link; one that names our own root stays in it.
        return walk_beneath(root, path, flags, mode, self._below)

    def _below(self, link: str) -> str | None:
        """What an absolute link says below the root, by the root's name or its real one.

        Only words are compared: nothing outside is looked at, where a mount may be dead.
        """
        for name in (self.path, os.path.realpath(self.path)):
            if f"{link}/".startswith(f"{name}/"):
                return link[len(name) + 1 :]
        return None

    @contextmanager
    def hold_open(self, key: str, flags: int) -> Iterator[int]:
        """:meth:`open` for the length of a ``with`` block."""
        descriptor = self.open(key, flags)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def open_directory(self, key: str, *, make: bool = False, durable: bool = True) -> int:
        """A directory, made with its missing parents if asked, each fsynced into its parent."""
        try:
            return self.open(key, _DIRECTORY)
        except FileNotFoundError:
            if not make:
                raise
        if not key:
            _make_outside(self.path, durable)
            return self.open(key, _DIRECTORY)
        above, _, name = key.rpartition("/")
        parent = self.open_directory(above, make=True, durable=durable)
        try:
            _make(parent, name, durable)
        finally:
            os.close(parent)
        return self.open(key, _DIRECTORY)


def _split_path(path: str) -> list[str]:
    if "\0" in path:
        raise InvalidInput(f"{path!r} holds a NUL byte, which no file name can")
    parts: list[str] = []
    for part in path.split("/"):
        if part in ("", "."):
            continue
        if part != "..":
            parts.append(part)
        elif parts:
            parts.pop()
        else:
            raise PathEscape(f"{path!r} leads out of the operator's root")
    return parts


def _make(parent: int, name: str, durable: bool) -> None:
    try:
        os.mkdir(name, dir_fd=parent)
    except FileExistsError:
        return  # somebody else made it meanwhile; if it is no directory, opening it will say so
    if durable:
        os.fsync(parent)


def _make_outside(path: str, durable: bool) -> None:
    """The root itself: above it symlinks are the user's own business."""
    above = os.path.dirname(path)
    if not os.path.isdir(above):
        _make_outside(above, durable)
    parent = os.open(above, _DIRECTORY)
    try:
        _make(parent, os.path.basename(path), durable)
    finally:
        os.close(parent)


def _leads_out(link: str) -> None:
    """Of a root whose name is not known every absolute link leads out."""


def walk_beneath(
    root: int,
    path: str,
    flags: int,
    mode: int = 0,
    below: Callable[[str], str | None] = _leads_out,
) -> int:
    """What :func:`syscalls.open_beneath` does, a component at a time: for older kernels, and for
    absolute links, of which ``below`` tells what they say below the root (None: they leave it).

    Every step is opened without following symlinks; a symlink is read and its own steps are
    walked in its place, so a directory that is swapped for one meanwhile leads nowhere. Those of an
    absolute one are walked from the root that is held, wherever that lies by now.
    """
    held = [os.dup(root)]
    steps = [part for part in reversed(path.split("/")) if part]
    links = 0
    try:
        while steps:
            step = steps.pop()
            if step == ".":
                continue
            if step == "..":
                # The root itself is the lowest that is held: one more step up would leave it.
                if len(held) == 1:
                    raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
                os.close(held.pop())
                continue
            link = _read_link(held[-1], step)
            if not steps and (link is None or flags & os.O_NOFOLLOW):
                return _open_plain(held[-1], step, flags, mode)
            if link is None:
                held.append(_open_plain(held[-1], step, os.O_PATH | os.O_DIRECTORY))
                continue
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            if link.startswith("/"):
                inside = below(link)
                if inside is None:
                    raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
                link = inside
                while len(held) > 1:
                    os.close(held.pop())
            steps.extend(part for part in reversed(link.split("/")) if part)
        return os.open(".", flags | os.O_CLOEXEC, dir_fd=held[-1])  # it ended in ``.`` or ``..``
    finally:
        for descriptor in held:
            os.close(descriptor)


def _open_plain(directory: int, name: str, flags: int, mode: int = 0) -> int:
    return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=directory)


def _read_link(directory: int, name: str) -> str | None:
    try:
        return os.readlink(name, dir_fd=directory)
    except FileNotFoundError:
        return None  # opening it will say so, or create it
    except OSError as error:
        if error.errno == errno.EINVAL:
            return None
        raise
