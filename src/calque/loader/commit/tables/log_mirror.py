"""The log of a Delta table whose service deltalake does not know, such as calque's own store.

The log is small and its entries never change: it is copied into a temporary folder, where the
library reads it and writes the next entry. That entry is then put beside the others on the
condition that nobody has put one of that number: the same compare-and-set as the library's own.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from calque.errors import ConditionNotMatch, NotFound
from calque.loader.run.writing.table_root import TableRoot

LOG = "_delta_log/"
POINTER = "_last_checkpoint"
NATIVE = ("fs", "file", "s3", "gs", "gcs", "az", "azblob")
"""Schemes that deltalake reads and writes by itself."""


class LogMirror:
    """A table's folder with nothing but its log in it."""

    def __init__(self, place: TableRoot) -> None:
        self._place = place
        self._temporary = tempfile.TemporaryDirectory(prefix="calque-log-")
        self._known: set[str] = set()

    @classmethod
    def of(cls, place: TableRoot) -> LogMirror | None:
        """None where the library needs no help."""
        return None if place.operator.scheme in NATIVE else cls(place)

    @property
    def folder(self) -> str:
        return self._temporary.name

    def pull(self) -> None:
        """Fetch what the log has and the folder has not; NotFound where there is no table."""
        prefix = self._place.full(LOG)
        found = False
        for entry in self._place.operator.list(prefix):
            name = entry.path.removeprefix(prefix)
            found = found or name.endswith(".json")
            if name in self._known or entry.is_dir or "/" in name:
                continue
            self._fetch(name)
        if not found:
            raise NotFound(f"there is no Delta table at {self._place.operator.location(prefix)}")

    @contextmanager
    def publish_writes(self) -> Iterator[None]:
        """What the library writes here is put into the log; ConditionNotMatch if it came too late.

        Whatever happens, nothing stays here that is not in the log.
        """
        before = set(self._names())
        try:
            yield
            new = set(self._names()) - before
            # The entry goes first, a checkpoint after it, and what points to that comes last.
            for name in sorted(name for name in new if name.endswith(".json")):
                self._push(name)
            checkpoint = sorted(name for name in new if name.endswith(".parquet"))
            for name in [*checkpoint, POINTER] if checkpoint else []:
                self._push(name)
        finally:
            for name in set(self._names()) - before - self._known:
                (self._log / name).unlink()

    @property
    def _log(self) -> Path:
        return Path(self.folder) / LOG

    def _names(self) -> list[str]:
        if not self._log.is_dir():
            return []
        return [path.name for path in self._log.iterdir() if path.is_file()]

    def _fetch(self, name: str) -> None:
        data = self._place.operator.read(self._place.full(LOG + name))
        self._log.mkdir(exist_ok=True)
        (self._log / name).write_bytes(data)
        if name != POINTER:  # everything else stays as it is
            self._known.add(name)

    def _push(self, name: str) -> None:
        is_entry = name.endswith(".json")
        data = (self._log / name).read_bytes()
        try:
            self._place.operator.write(self._place.full(LOG + name), data, if_not_exists=is_entry)
        except ConditionNotMatch as error:
            raise ConditionNotMatch(
                f"another commit took the place of {name}", hint="Nothing was changed."
            ) from error
        if is_entry:
            self._known.add(name)


@contextmanager
def publish_writes(log: LogMirror | None) -> Iterator[None]:
    """As :meth:`LogMirror.publish_writes`; nothing where there is no mirror."""
    if log is None:
        yield
        return
    with log.publish_writes():
        yield
