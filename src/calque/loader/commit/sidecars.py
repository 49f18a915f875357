"""Sidecars: beside the table's data, a file for each load that lists its sources.

``_calque/loads/<load id>.json.gz`` is written before the commit that names it; the small file
``<load id>.done`` says after the fact which version committed it, so that a lost ledger can be
rebuilt even when the table's log no longer reaches back so far. Cleaners of Delta and Iceberg
leave folders that begin with ``_`` alone. An empty ``<load id>.id`` keeps the id of a label for the
ledger that was first to use it. Where sidecars are gone, since their time was over, an empty
``<tenant>-<time>.forgotten`` says how young the files were that they told of.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from calque.errors import (
    AlreadyExists,
    CalqueError,
    ConditionNotMatch,
    IntegrityError,
    NotFound,
)
from calque.ledger.manifest import FileResult, LoadedFile, Manifest
from calque.loader.run.writing.table_root import TableRoot

FOLDER = "_calque/loads/"
SOURCES, DONE, TAKEN, FORGOTTEN = ".json.gz", ".done", ".id", ".forgotten"


class Sidecars:
    """The sidecars of one table."""

    def __init__(self, root: TableRoot) -> None:
        self._operator, self._path = root.operator, root.base

    def path(self, load_id: str) -> str:
        """Under the table's root, as the commit names it."""
        return FOLDER + load_id + SOURCES

    def write(self, load_id: str, table_id: str, tenant: str, manifest: Manifest) -> str:
        """List the sources of a load into a table; writing it again is harmless."""
        body = json.dumps(
            {
                "load_id": load_id,
                "table_id": table_id,
                "tenant": tenant,
                "label": manifest.label,
                "last": manifest.last,
                "truncate": manifest.truncate,
                "sources": [source.to_json() for source in manifest.sources],
                "moved": {place: list(parts) for place, parts in manifest.moved.items()},
                "results": [result.to_json() for result in manifest.results],
                "purge": manifest.purge,
                "archive": manifest.archive,
            },
            separators=(",", ":"),
        )
        self._operator.write(self._full(self.path(load_id)), gzip.compress(body.encode(), 1))
        return self.path(load_id)

    def reserve(self, load_id: str) -> bool:
        """Take an id that others may choose as well; False where it is taken, or may be."""
        if not self._operator.capability.write_with_if_not_exists:
            return False
        try:
            self._operator.write(self._full(FOLDER + load_id + TAKEN), b"", if_not_exists=True)
        except (AlreadyExists, ConditionNotMatch):
            return False
        return True

    def finish(self, load_id: str, version: int) -> None:
        """Note that the load was committed at this version."""
        body = json.dumps({"version": version}).encode()
        self._operator.write(self._full(FOLDER + load_id + DONE), body)

    def has_listed(self, load_id: str) -> bool:
        """Whether its sources can still be read here."""
        return self._operator.exists(self._full(self.path(load_id)))

    def remove(self, load_id: str) -> bool:
        """Drop what a load listed that is aborted or long over; whether there was anything."""
        was_there = self.has_listed(load_id)
        self._operator.delete(self._full(self.path(load_id)))
        self._operator.delete(self._full(FOLDER + load_id + DONE))
        return was_there

    def forget(self, load_id: str) -> bool:
        """Drop all of a load that is long over, its id too; whether it had listed anything."""
        self._operator.delete(self._full(FOLDER + load_id + TAKEN))
        return self.remove(load_id)

    def note_forgotten(self, table_id: str, tenant: str, until: int) -> None:
        """Say how young the files are of which no sidecar tells any more.

        By a name alone: of several that do so at once the greatest stays, whoever comes last.
        """
        known = list(self._forgotten_stamps(table_id, tenant))
        if until > max(known, default=until - 1):
            self._operator.write(self._full(_forgotten_path(table_id, tenant, until)), b"")
        for stamp in known:
            if stamp < until:
                self._operator.delete(self._full(_forgotten_path(table_id, tenant, stamp)))

    def forgotten_until(self, table_id: str, tenant: str) -> int | None:
        """How young those files were; None where every load is told of."""
        return max(self._forgotten_stamps(table_id, tenant), default=None)

    def _forgotten_stamps(self, table_id: str, tenant: str) -> Iterator[int]:
        start = self._full(FOLDER + _forgotten_prefix(table_id, tenant))
        try:
            for found in self._operator.list(start):
                stamp = found.path.removeprefix(start).removesuffix(FORGOTTEN)
                with suppress(ValueError):
                    yield int(stamp)
        except NotFound:
            return

    def loads(self) -> Iterator[tuple[str, int | None]]:
        """Every load that left a sidecar, and its version where it is known to be committed."""
        listed, done = [], set()
        start = len(self._full(FOLDER))
        try:
            for found in self._operator.list(self._full(FOLDER)):
                name = found.path[start:]
                if name.endswith(SOURCES):
                    listed.append(name.removesuffix(SOURCES))
                elif name.endswith(DONE):
                    done.add(name.removesuffix(DONE))
        except NotFound:
            return
        for load_id in listed:
            yield load_id, self._version(load_id) if load_id in done else None

    def _version(self, load_id: str) -> int | None:
        try:
            return int(
                json.loads(self._operator.read(self._full(FOLDER + load_id + DONE)))["version"]
            )
        except (ValueError, KeyError, CalqueError):
            return None

    def read(self, load_id: str, table_id: str, tenant: str) -> Manifest | None:
        """What a load brought, as it listed it; None where that was into another table.

        One that was dropped and made again in the same folder finds the sidecars of the old one.
        Tenants do not know of each other's files: of another's load counts only that it emptied
        the table. NotFound where the sidecar is gone.
        """
        packed = self._operator.read(self._full(self.path(load_id)))
        try:
            body = json.loads(gzip.decompress(packed))
            # The first sidecars did not say, neither of the table nor of the tenant.
            if body.get("table_id", table_id) != table_id:
                return None
            if body.get("tenant", tenant) != tenant:
                return Manifest(truncate=True) if body["truncate"] else None
            return _manifest_from_json(body)
        except (OSError, ValueError, KeyError, EOFError, TypeError, zlib.error) as error:
            raise IntegrityError(
                f"the sidecar of load {load_id} cannot be read: {error}",
                hint=f"Bring {self.path(load_id)} back, or remove it under the table: then the "
                "files of that load count as new.",
            ) from error

    def _full(self, path: str) -> str:
        return self._path + path


def _forgotten_path(table_id: str, tenant: str, stamp: int) -> str:
    return f"{FOLDER}{_forgotten_prefix(table_id, tenant)}{stamp}{FORGOTTEN}"


def _forgotten_prefix(table_id: str, tenant: str) -> str:
    """Of this very table and tenant: a name may hold anything, its digest goes into a path."""
    return hashlib.sha256(f"{table_id}\0{tenant}".encode()).hexdigest()[:16] + "-"


def _manifest_from_json(body: Mapping[str, Any]) -> Manifest:
    sources = tuple(LoadedFile.from_json(source) for source in body["sources"])
    return Manifest(
        sources=sources,
        results=tuple(FileResult(**one) for one in body.get("results") or map(_result, sources)),
        moved={
            place: tuple((path, first, rows) for path, first, rows in parts)
            for place, parts in body["moved"].items()
        },
        purge=body.get("purge", False),
        archive=body.get("archive"),
        truncate=body["truncate"],
        label=body["label"],
        last=body["last"],
    )


def _result(source: LoadedFile) -> dict[str, Any]:
    """The result row of a source, as far as the first sidecars tell."""
    location = source.identity.location
    return {
        "location": location,
        "name": location.rpartition("/")[2],
        "status": "PARTIALLY_LOADED" if source.errors else "LOADED",
        "rows_parsed": source.rows + source.errors,
        "rows_loaded": source.rows,
        "errors": source.errors,
        "bytes": source.identity.size,
    }
