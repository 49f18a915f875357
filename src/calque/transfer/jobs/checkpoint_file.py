"""Checkpoints of interrupted copies, in the user's state folder."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from calque.errors import ConditionNotMatch, PermissionDenied

if TYPE_CHECKING:
    from calque.operator import Checkpoint


class StateFolderDenied(PermissionDenied):
    """Our own state folder cannot be used; the two ends of the copy have refused nothing."""


def state_folder() -> Path:
    """``$XDG_STATE_HOME/calque/copies``, by default under ``~/.local/state``."""
    base = os.environ.get("XDG_STATE_HOME")
    root = Path(base) if base and os.path.isabs(base) else Path.home() / ".local" / "state"
    return root / "calque" / "copies"


@dataclass(frozen=True, slots=True)
class CheckpointFile:
    """Where the checkpoint of one copy (this source to this target) is kept."""

    path: Path

    @classmethod
    def of(cls, source: str, target: str) -> CheckpointFile:
        digest = hashlib.sha256(os.fsencode(f"{source}\0{target}")).hexdigest()
        return cls(state_folder() / f"{digest[:40]}.json")

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from the same copy; ConditionNotMatch while one is at it."""
        with self._map_errors():
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # A file of its own: the checkpoint is replaced by renaming, and a lock would stay on
            # the old.
            descriptor = open_private(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT)
        try:
            _lock(descriptor)
            yield
        finally:
            os.close(descriptor)

    def read(self) -> bytes | None:
        """The envelope as it was written; None when there is none."""
        with self._map_errors():
            try:
                with open(self.path, "rb", opener=open_private) as file:
                    return file.read()
            except FileNotFoundError:
                return None

    def write(self, checkpoint: Checkpoint) -> None:
        """Replace the envelope in one moment; a crash leaves the old one or the new one."""
        fresh = self.path.with_suffix(".new")
        with self._map_errors():
            with open(fresh, "w", opener=open_private) as file:
                file.write(checkpoint.to_json())
                file.flush()
                # On the disk before it gets its name: after a power cut an empty file would stand
                # there.
                os.fsync(file.fileno())
            fresh.rename(self.path)

    def remove(self) -> None:
        """Forget the copy."""
        with self._map_errors():
            self.path.unlink(missing_ok=True)

    @contextmanager
    def _map_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StateFolderDenied(
                f"the state folder {self.path.parent} cannot be used: {error.strerror}",
                hint="Set XDG_STATE_HOME to a folder of yours, or copy without --resume.",
            ) from error


def _lock(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise ConditionNotMatch(
            "another calque is making this very copy", hint="Wait for it, or stop it first."
        ) from error


def open_private(path: str | Path, flags: int) -> int:
    """Open a file of the state folder, for its owner alone.

    A link is not followed: it could lead to a file that is none of ours. A pipe is not waited for.
    """
    return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
