"""Archive: move the source of a finished load elsewhere, never over anything that is there.

A move is one rename where the service has that; else a copy and then a delete. Killed between the
two it is begun again: the archive holds the same bytes by then, so that only the delete is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from calque import faults
from calque.config import Settings
from calque.errors import AlreadyExists, ConditionNotMatch, StatementInvalid, Unsupported
from calque.loader.model.content_hash import content_hash
from calque.loader.plan.stage import Stage, is_hidden, resolve
from calque.operator import Operator
from calque.operator.copying import start_copy
from calque.operator.move import delete_moved, rename_at_once
from calque.operator.options import CopyOptions
from calque.values import Metadata


@dataclass(frozen=True, slots=True)
class Archive:
    """A place for loaded files: the operator, and the folder in it."""

    operator: Operator
    folder: str

    @classmethod
    def at(cls, location: str, settings: Settings) -> Archive:
        """The archive at a location, or at ``@name/path`` of a configured stage."""
        place, options = resolve(location, settings)
        return cls(*Operator.locate(place.rstrip("/") + "/", **cast(Any, options)))

    @property
    def location(self) -> str:
        return self.operator.location(self.folder)

    def take(self, operator: Operator, found: Metadata, name: str, load_id: str) -> None:
        """Move an object of ``operator`` here under its name.

        Where the name is taken by other bytes it goes into a folder with the name of its load.
        """
        for path in (self.folder + name, f"{self.folder}{load_id}/{name}"):
            try:
                self._move(operator, found, path)
                return
            except (AlreadyExists, ConditionNotMatch):
                if self._holds(path, operator, found):
                    self._delete(operator, found, path)
                    return
                if operator.stat(found.path).pin != found.pin:
                    raise
        raise AlreadyExists(
            f"{self.location}{name} and {self.location}{load_id}/{name} hold other files",
            hint="Nothing is overwritten: move those away, and the next load archives this one.",
        )

    def _move(self, operator: Operator, found: Metadata, path: str) -> None:
        service, into = operator.service, self.operator.service
        options = self._options(operator, found)
        if rename_at_once(service, found, into, path, options) is not None:
            return
        start_copy(service, found.path, into, path, options).run()
        faults.point("purge.copied")
        self._delete(operator, found, path)

    def _options(self, operator: Operator, found: Metadata) -> CopyOptions:
        same = operator.scheme == self.operator.scheme
        return CopyOptions(
            if_not_exists=True,
            source_if_match=found.pin,
            stream="auto",
            carry_metadata=same,
            carry_tags=same and self.operator.capability.tags,
        )

    def _delete(self, operator: Operator, found: Metadata, path: str) -> None:
        """Delete what lies in the archive by now, once that is seen to be another object."""
        options = self._options(operator, found)
        delete_moved(operator.service, found, self.operator.service, path, options)

    def _holds(self, path: str, operator: Operator, found: Metadata) -> bool:
        """Whether the archive has the very bytes of the source under this path already."""
        if not self.operator.exists(path) or self.operator.stat(path).size != found.size:
            return False
        pin = found.pin if operator.capability.read_with_if_match else None
        source = operator.read_stream(found.path, if_match=pin)
        return content_hash(self.operator.read_stream(path)) == content_hash(source)


def delete_pinned(operator: Operator, found: Metadata) -> None:
    """Delete the object that was looked at, and no newer one where the service can tell."""
    guard = found.etag if operator.capability.delete_with_if_match else None
    operator.delete(found.path, if_match=guard)


def check_archive(location: str, settings: Settings, stage: Stage, table_root: str | None) -> str:
    """How the queue is to name the archive; refused where moved files would come back as new.

    ``@name/path`` stays, for whoever works off the queue finds the stage in the configuration.
    """
    archive = Archive.at(location, settings)
    place = archive.location.rstrip("/") + "/"
    inside = place.removeprefix(stage.prefix) if place.startswith(stage.prefix) else None
    if inside is not None and not (inside and is_hidden(inside.rstrip("/"))):
        raise StatementInvalid(
            f"the archive {location} lies in the stage, where its files would be loaded again",
            hint="Choose a folder outside of it, or one whose name begins with _ .",
        )
    if table_root is not None and place.startswith(table_root.rstrip("/") + "/"):
        raise StatementInvalid(f"the archive {location} lies in the table's own folder")
    can = archive.operator.capability
    if not (can.write_with_if_not_exists and can.copy_with_if_not_exists):
        raise Unsupported(
            f"the service of {location} cannot write without overwriting, so nothing is moved there"
        )
    return location if location.startswith("@") else archive.location
