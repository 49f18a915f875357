"""Files in key order, directory by directory."""

from __future__ import annotations

import os
import stat as modes
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

from calque.operator.services.fs.errors import map_errors, translate
from calque.operator.services.fs.marker import is_temporary
from calque.operator.services.fs.root import Root
from calque.operator.services.fs.stat import describe, describe_link
from calque.values import Metadata

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY


Skip = Callable[[str], bool]
"""Whether a directory (its key ends in ``/``) is left out with all that is in it."""
Tell = Callable[[str, str], None]
"""Gets the key of what is no file, and what it is instead."""


def list_files(root: Root, prefix: str, start_after: str, recursive: bool) -> Iterator[Metadata]:
    """Entries whose key begins with ``prefix``, in the order of their UTF-8 bytes, as S3 does.

    Symlinks to files are shown as files if they stay beneath the root. Symlinks to directories
    are shown as directories of one level, but a recursive listing does not follow them: it always
    ends. Memory holds the names of the directories on the way down, never the whole tree.
    """
    above, _, start = prefix.rpartition("/")
    base = root.directory_key(above)
    return _Walk(root, os.fsencode(start_after), recursive).entries(base, start)


def walk_files(
    root: Root, prefix: str, start_after: str, skip: Skip, tell: Tell, *, links: bool = False
) -> Iterator[Metadata]:
    """All files below a prefix, as :func:`list_files`; what is none is told on the way.

    A directory that is skipped is not opened. ``tell`` gets links that lead out of the root,
    nowhere or to directories, sockets, pipes, devices, and directories (with a ``/`` at the end)
    that are empty. ``links``: they are entries of their own, wherever they lead.
    """
    above, _, start = prefix.rpartition("/")
    after = os.fsencode(start_after)
    walk = _Walk(root, after, True, skip=skip, tell=tell, links=links)
    return walk.entries(root.directory_key(above), start)


def _skip_none(key: str) -> bool:
    return False


def _tell_nobody(key: str, kind: str) -> None:
    pass


@dataclass(slots=True)
class _Level:
    """One directory of the way down: its key with a slash, and the names to come, last first.

    Names of directories end in ``/``: that is how ``a-`` sorts before ``a/b``.
    """

    prefix: str
    names: list[str]
    descriptor: int | None

    def close(self) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None


class _Walk:
    def __init__(
        self,
        root: Root,
        after: bytes,
        recursive: bool,
        *,
        skip: Skip = _skip_none,
        tell: Tell = _tell_nobody,
        links: bool = False,
    ) -> None:
        self._links = links
        self._root = root
        self._after: bytes | None = after or None
        self._recursive = recursive
        self._skip = skip
        self._tell = tell

    def entries(self, base: str, start: str) -> Iterator[Metadata]:
        level = self._enter(base, start, 0)
        levels = [level] if level else []
        try:
            while levels:
                level = levels[-1]
                below = yield from self._level(level)
                level.close()  # one descriptor at a time, however deep the tree
                if below is None:
                    levels.pop()
                elif entered := self._enter(below[:-1], "", os.O_NOFOLLOW):
                    levels.append(entered)
        finally:
            for level in levels:
                level.close()

    def _level(self, level: _Level) -> Generator[Metadata, None, str | None]:
        """The files of a level up to its next directory, which is returned; None at the end."""
        names, prefix, stat, is_regular = level.names, level.prefix, os.lstat, modes.S_ISREG
        descriptor, passing = level.descriptor, self._after is not None
        while names:
            name = names.pop()
            key = prefix + name
            if passing:
                if self._is_before(key):
                    continue
                passing = self._after is not None
            if name[-1] != "/":
                if descriptor is None:
                    descriptor = self._reopen(level)
                    if descriptor is None:
                        continue
                try:
                    found = stat(name, dir_fd=descriptor)
                except FileNotFoundError:
                    continue  # it vanished meanwhile
                except OSError as error:
                    raise translate(error, self._root.absolute(key)) from error
                if is_regular(found.st_mode):
                    yield describe(key, found)
                elif (other := self._describe_other(key, found)) is not None:
                    yield other
            elif self._recursive:
                if not self._skip(key):
                    return key
            else:
                yield Metadata(path=key, is_dir=True)
        return None

    def _is_before(self, key: str) -> bool:
        """Whether ``start_after`` leaves this key, or all of this directory, behind."""
        assert self._after is not None
        encoded = os.fsencode(key)
        if encoded > self._after:
            self._after = None  # and so is everything to come
            return False
        return not (key[-1] == "/" and self._recursive and self._after.startswith(encoded))

    def _enter(self, key: str, start: str, flags: int) -> _Level | None:
        """The level of a directory; None when it is not there (any more)."""
        prefix = f"{key}/" if key else ""
        with map_errors(self._root.absolute(key)):
            try:
                descriptor = self._root.open(key, _DIRECTORY | flags)
            except (FileNotFoundError, NotADirectoryError):
                return None
            try:
                return _Level(prefix, self._names(prefix, start, descriptor), descriptor)
            except BaseException:
                os.close(descriptor)
                raise

    def _names(self, prefix: str, start: str, descriptor: int) -> list[str]:
        names = []
        empty = True
        with os.scandir(descriptor) as entries:
            for entry in entries:
                name, empty = entry.name, False
                if start and not name.startswith(start):
                    continue
                if entry.is_file(follow_symlinks=False):  # most are: asked once, and first
                    if name[0] == "." and is_temporary(name):
                        continue
                elif entry.is_symlink():
                    if not self._links and self._leads_to_directory(prefix + name):
                        if self._recursive:
                            self._tell(prefix + name, "link to a folder")
                            continue
                        name += "/"
                elif entry.is_dir():
                    name += "/"
                names.append(name)
        if empty and prefix:
            self._tell(prefix, "empty folder")
        # str sorts by code point, which is the order of UTF-8; only bytes that are no UTF-8
        # (they come as lone surrogates) need to be compared as the bytes they are
        names.sort(key=None if all(map(str.isascii, names)) else os.fsencode, reverse=True)
        return names

    def _leads_to_directory(self, key: str) -> bool:
        try:
            with self._root.hold_open(key, os.O_PATH | os.O_DIRECTORY):
                return True
        except OSError:
            return False  # a file, or dangling, looping, leading out: no directory of ours

    def _describe_other(self, key: str, found: os.stat_result) -> Metadata | None:
        """What a link leads to, or is; None for anything else that is no file."""
        if not modes.S_ISLNK(found.st_mode):
            self._tell(key, _kind(found.st_mode))
            return None
        if self._links:
            return describe_link(key, found)
        behind = self._stat_behind(key)
        if behind is None:
            self._tell(key, "link that leads out or nowhere")
            return None
        return describe(key, behind)

    def _reopen(self, level: _Level) -> int | None:
        """The directory once more; None if it is gone, and its files with it."""
        with map_errors(self._root.absolute(level.prefix)):
            try:
                level.descriptor = self._root.open(level.prefix[:-1], _DIRECTORY)
            except (FileNotFoundError, NotADirectoryError):
                level.names.clear()
        return level.descriptor

    def _stat_behind(self, key: str) -> os.stat_result | None:
        """The file a symlink leads to; None when it dangles, loops or leads out of the root."""
        try:
            with self._root.hold_open(key, os.O_PATH) as descriptor:
                found = os.fstat(descriptor)
        except OSError:
            return None
        return found if modes.S_ISREG(found.st_mode) else None


def _kind(mode: int) -> str:
    """What it is that is neither file, directory nor link."""
    if modes.S_ISSOCK(mode):
        return "socket"
    return "pipe" if modes.S_ISFIFO(mode) else "device"
