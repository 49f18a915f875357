"""Copies of one object that others can see: each leaves a note in the user's state folder.

A note says what is copied where, how far it is, and the command that makes the copy. Its process
holds a lock on it for as long as it lives, which no crash can leave behind: so a note without a
lock is of a copy that was left. One that cannot be gone on with is then nobody's, and removed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from calque.errors import NotFound
from calque.transfer.jobs.checkpoint_file import CheckpointFile, open_private, state_folder

WORTH_A_NOTE = 16 * 1024 * 1024
"""Bytes. Smaller copies are over before anybody looks."""
_NOTE_SECONDS = 0.5
_TAKE_SECONDS = 1.0
_SUFFIX = ".copy"
_RESUME = "--resume"
_NO_NOTE = (OSError, ValueError, TypeError, KeyError, RecursionError)
"""What reading something else than a note may raise."""
_LAST_YEAR = 253_402_300_799
"""The last second that a date can tell."""


@dataclass(frozen=True, slots=True)
class SingleCopy:
    """One copy, as its process last told."""

    copy_id: str
    source: str
    target: str
    done: int
    total: int | None
    started: float
    updated: float
    """Seconds since 1970, as ``started``."""
    process: int
    folder: str
    """Where the command was given: its paths may be relative."""
    command: tuple[str, ...]
    """What was typed behind ``calque``, without secrets."""
    resumable: bool
    state: Literal["RUNNING", "STOPPED"] = "RUNNING"

    @property
    def bytes_a_second(self) -> float | None:
        seconds = self.updated - self.started
        return self.done / seconds if seconds > 0 else None


class CopyNote:
    """The note of a copy that this process makes; see :func:`note_copy`."""

    def __init__(self, path: Path, copy: SingleCopy) -> None:
        self._path = path
        self._told = asdict(copy)
        self._next = 0.0
        # A note must never be in the way of a copy: without a folder to write to there is none.
        self._file: int | None = None
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file = _take(path)
            self.tell(0)

    def tell(self, done: int) -> None:
        """How far it is, now and then."""
        now = time.monotonic()
        if self._file is None or now < self._next:
            return
        self._next = now + _NOTE_SECONDS
        self._told |= {"done": done, "updated": time.time()}
        text = json.dumps(self._told).encode()
        with suppress(OSError):
            os.pwrite(self._file, text, 0)
            os.ftruncate(self._file, len(text))

    def end(self, done: int, *, keep: bool) -> None:
        """The copy is over, or left so that it can be gone on with (``keep``)."""
        if self._file is None:
            return
        with suppress(OSError):
            if keep:
                self._next = 0.0
                self.tell(done)
            else:
                self._path.unlink(missing_ok=True)
        os.close(self._file)
        self._file = None


def _take(path: Path) -> int | None:
    """The file of a note, locked; None where somebody who looks at it does not let go.

    Those who look hold it for moments, and may remove it while they do.
    """
    until = time.monotonic() + _TAKE_SECONDS
    while time.monotonic() < until:
        file = open_private(path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(file), os.lstat(path)):
                return file
        except (BlockingIOError, FileNotFoundError):
            time.sleep(_NOTE_SECONDS / 50)
        except BaseException:
            os.close(file)
            raise
        os.close(file)
    return None


def note_copy(
    source: tuple[str, str],
    target: tuple[str, str],
    total: int | None,
    *,
    command: Sequence[str],
    resumable: bool,
) -> CopyNote:
    """A note of a copy that begins. ``source`` and ``target`` are each a URI and an identity."""
    kept = CheckpointFile.of(source[1], target[1])
    # Of a copy that can be gone on with there is one at a time; others may run side by side.
    name = kept.path.stem if resumable else f"{kept.path.stem}-{os.getpid()}"
    now = time.time()
    copy = SingleCopy(
        copy_id=_id_of(name),
        source=source[0],
        target=target[0],
        done=0,
        total=total,
        started=now,
        updated=now,
        process=os.getpid(),
        folder=os.getcwd(),
        command=tuple(command),
        resumable=resumable,
    )
    return CopyNote(kept.path.with_name(name + _SUFFIX), copy)


def list_copies() -> list[SingleCopy]:
    """Copies of this user on this machine, under way or left; the youngest first."""
    found = []
    for path in _notes():
        with suppress(*_NO_NOTE), _opened(path) as (file, is_left):
            copy = _read(path, file, is_left=is_left)
            if is_left and not (copy.resumable and path.with_suffix(".json").exists()):
                path.unlink()
                continue
            found.append(copy)
    return sorted(found, key=lambda copy: copy.started, reverse=True)


def find_copy(copy_id: str) -> SingleCopy:
    """One of them by its id; NotFound."""
    for copy in list_copies():
        if copy.copy_id == copy_id:
            return copy
    raise NotFound(f"there is no copy {copy_id!r}", hint="It may be over by now.")


def _notes() -> list[Path]:
    with suppress(OSError):
        return [path for path in state_folder().iterdir() if path.suffix == _SUFFIX]
    return []


@contextmanager
def _opened(path: Path) -> Iterator[tuple[int, bool]]:
    """The note, and whether its process is gone: the lock is free then, and ours while we look."""
    file = open_private(path, os.O_RDONLY)
    try:
        is_left = True
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            is_left = False
        yield file, is_left
    finally:
        os.close(file)


def _read(path: Path, file: int, *, is_left: bool) -> SingleCopy:
    """The note, if a process of this user has written it here: its command may be run again."""
    found = os.fstat(file)
    if found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise ValueError("somebody else could have written it")
    told: dict[str, Any] = json.loads(os.pread(file, 1 << 20, 0))
    state = "STOPPED" if is_left else "RUNNING"
    copy = SingleCopy(**{**told, "command": tuple(told["command"]), "state": state})
    if not _is_sound(copy) or copy.copy_id != _id_of(path.stem):
        raise ValueError("it is no note of ours")
    return copy


def _is_sound(copy: SingleCopy) -> bool:
    texts = (copy.source, copy.target, copy.folder, *copy.command)
    counts = (copy.done, copy.process, 0 if copy.total is None else copy.total)
    moments = (copy.started, copy.updated)
    return (
        all(isinstance(each, str) for each in texts)
        and all(type(each) is int and each >= 0 for each in counts)
        and all(type(each) in (int, float) and 0 <= each <= _LAST_YEAR for each in moments)
        and type(copy.resumable) is bool
        and (not copy.resumable or _RESUME in copy.command)
    )


def _id_of(name: str) -> str:
    return hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
