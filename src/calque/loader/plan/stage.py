"""A stage: which files are there to be loaded, in key order."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from calque.config import Settings
from calque.errors import ConfigInvalid, IsADirectory, NotFound, StatementInvalid
from calque.loader.model.staged_file import StagedFile
from calque.loader.request.glob import glob_regex, split_glob
from calque.loader.request.service_options import service_options
from calque.loader.run.writing.table_root import TableRoot
from calque.operator import Operator
from calque.values import Metadata, SourceIdentity

UNFINISHED = (".tmp", "._COPYING_", ".part", ".partial", ".crdownload", ".inprogress")
"""Endings of files that are still being written by common tools."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A file that cannot be loaded: FILES names it and it is not there, or it has no sound name."""

    name: str
    location: str
    why: str = "there is no such file in the stage"


class Stage:
    """The files under a location, or those a glob, a pattern or a list picks from them."""

    def __init__(
        self,
        location: str,
        settings: Settings,
        *,
        files: Sequence[str] = (),
        pattern: str | None = None,
    ) -> None:
        place, options = resolve(location, settings)
        base, glob = split_glob(place)
        self.options: dict[str, object] = options
        self.operator, self._path = Operator.locate(base, **cast(Any, options))
        self._glob = re.compile(glob_regex(glob)) if glob else None
        self._pattern = re.compile(pattern) if pattern is not None else None
        self._files = tuple(files)
        self._own: tuple[str, ...] = ()
        self._single: Metadata | None = None
        self.ignored = 0
        self.unnamed: list[Missing] = []
        """Files of the last listing whose names are not UTF-8: no record could name them."""
        self._settle()
        if not _is_utf8(self._path):
            raise StatementInvalid(
                f"the stage's name is not UTF-8: {_printable(location)}", hint="Rename it."
            )

    def _settle(self) -> None:
        """A location without a slash at its end is a file if there is one, else a folder."""
        if self._path == "" or self._path.endswith("/"):
            return
        if self._glob is None and not self._files:
            try:
                found = self.operator.stat(self._path)
            except (NotFound, IsADirectory):
                found = None
            if found is not None and not found.is_dir:
                self._single = found
                return
        self._path += "/"

    def must_be_there(self) -> None:
        """Raise NotFound where the stage's folder or bucket is not there.

        Services without folders have told of a missing bucket when it was listed.
        """
        if self._single is not None or self.operator.scheme not in ("fs", "file"):
            return
        try:
            with suppress(IsADirectory):
                self.operator.stat(self._path.rstrip("/"))
        except NotFound as error:
            raise NotFound(
                f"the stage {self.prefix} is not there", hint="Check its spelling."
            ) from error

    @property
    def prefix(self) -> str:
        """The location that every file's location begins with."""
        if self._single is not None:
            return self.operator.location(self._path)
        return self.base + self._path

    @property
    def base(self) -> str:
        """The location of the stage's service: what its operator's paths follow."""
        root = self.operator.location("")
        return root if root.endswith("/") else root + "/"

    def path_of(self, file: StagedFile) -> str:
        """The path by which the stage's operator knows a file."""
        return file.location.removeprefix(self.base)

    def leave_out(self, table: TableRoot) -> None:
        """The files of this table, which may lie in the stage, are no staged files.

        Links may lead to the stage, to the table or to both, so all spellings are left out.
        """
        root = table.operator.location(table.base).rstrip("/") + "/"
        self._own = (root, _real(root))
        if self.prefix.startswith(root) or _real(self.prefix).startswith(_real(root)):
            raise StatementInvalid(
                f"the stage {self.prefix} lies in the table's own folder",
                hint="Nothing in there is taken for staged files: keep the stage apart.",
            )
        stage, inside = self.base + self._path, _real(root).removeprefix(_real(self.prefix))
        if inside != _real(root):
            self._own += (stage + inside,)

    @property
    def is_named_one_by_one(self) -> bool:
        """The files are named one by one, so records are better fetched than scanned."""
        return bool(self._files) or self._single is not None

    def list(self) -> Iterator[StagedFile]:
        """Every file of the stage in key order; folders, hidden and unfinished ones left out."""
        if self._single is not None:
            yield self._make_staged_file(self._single, self._path.rpartition("/")[2])
            return
        start, base = len(self._path), self.base
        glob, pattern = self._glob, self._pattern
        self.unnamed = []
        for found in self.operator.list(self._path):
            path = found.path
            name = path[start:]
            if not name or name[-1] == "/" or found.is_dir:
                continue
            if glob is not None and not glob.fullmatch(name):
                continue
            if pattern is not None and not pattern.fullmatch(name):
                continue
            if is_hidden(name):
                self.ignored += 1
                continue
            if not _is_utf8(name):
                self.unnamed.append(self._refuse_name(name))
                continue
            # What operator.location() gives, in less time. It refuses a path that leads out, so one
            # with ".." goes through it.
            location = base + path if ".." not in path else self.operator.location(path)
            if location.startswith(self._own):  # which may grow while the listing goes on
                continue
            yield StagedFile(location, name, SourceIdentity.of(location, found), found.details())

    def look_up_files(self) -> Iterator[StagedFile | Missing]:
        """The files that FILES names, each looked up; in order of location, each once."""
        names = sorted(set(self._files))
        with ThreadPoolExecutor(16, thread_name_prefix="calque-stat") as pool:
            yield from pool.map(self._look_up, names)

    def _look_up(self, name: str) -> StagedFile | Missing:
        if not _is_utf8(name):
            return self._refuse_name(name)
        path = self._path + name
        try:
            found = self.operator.stat(path)
        except (NotFound, IsADirectory):
            return Missing(name, self.operator.location(path))
        if found.is_dir:
            return Missing(name, self.operator.location(path))
        return self._make_staged_file(found, name)

    def _refuse_name(self, name: str) -> Missing:
        shown = _printable(name)
        location = f"{self.base}{self._path}{shown}"
        return Missing(shown, location, "its name is not UTF-8: rename it to have it loaded")

    def _make_staged_file(self, found: Metadata, name: str) -> StagedFile:
        location = self.operator.location(found.path)
        return StagedFile(location, name, SourceIdentity.of(location, found), found.details())


def _real(folder: str) -> str:
    """The folder that a local one is when links are followed; any other as it is."""
    if not folder.startswith("file://"):
        return folder
    return "file://" + os.path.realpath(folder.removeprefix("file://")).rstrip("/") + "/"


def _is_utf8(name: str) -> bool:
    """Bytes that are no UTF-8 come from the file system as lone surrogates."""
    if name.isascii():
        return True
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _printable(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def is_hidden(name: str) -> bool:
    """Names that tools use for what is not (yet) data: ``_x``, ``.x``, ``x.tmp`` …"""
    if name.endswith(UNFINISHED):
        return True
    if name[:1] not in "._" and "/." not in name and "/_" not in name:
        return False  # nearly every name
    return any(
        part.startswith(".") or (part.startswith("_") and "=" not in part)
        for part in name.split("/")
    )


def is_too_young(file: StagedFile, min_age: float) -> bool:
    """Changed more recently than the minimum age: perhaps still being written."""
    changed = file.identity.last_modified
    return min_age > 0 and changed is not None and time.time() - changed.timestamp() < min_age


def resolve(location: str, settings: Settings) -> tuple[str, dict[str, object]]:
    """``@name/rest`` is a stage of the configuration; anything else a location."""
    if not location.startswith("@"):
        return location, {}
    name, slash, rest = location[1:].partition("/")
    stage = settings.stages.get(name)
    if stage is None:
        raise ConfigInvalid(
            f"there is no stage {name!r} in the configuration",
            hint=f"Describe it under [stages.{name}] in calque.toml, or give its location.",
        )
    if ".." in rest.split("/"):
        raise StatementInvalid(f"a path within a stage cannot climb out of it: {location}")
    base = stage.location
    joined = base.rstrip("/") + slash + rest if slash else base
    return joined, service_options(joined, stage.options, f"[stages.{name}]")
