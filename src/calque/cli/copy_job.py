"""One copy on the command line: progress, interruption, resume."""

from __future__ import annotations

import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING

import typer

from calque import tracing
from calque.cli.locations import Location
from calque.cli.output import byte_bar, say, size
from calque.errors import CalqueError, CheckpointInvalid, PermissionDenied, Unavailable, Unsupported
from calque.operator.checkpoint import Checkpoint
from calque.operator.copy import abort_copy
from calque.transfer.jobs.checkpoint_file import CheckpointFile, StateFolderDenied
from calque.transfer.jobs.single_copies import WORTH_A_NOTE, note_copy
from calque.values import Metadata

if TYPE_CHECKING:
    from calque.operator import Copier
    from calque.operator.options import CopyKeywords

_SAVE_SECONDS = 2.0
_SAY_SECONDS = 5.0
INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class CopyReport:
    """The report of a copy."""

    source: str
    target: str
    bytes: int
    seconds: float
    route: str
    resumed_from: int
    metadata: Metadata
    source_metadata: Metadata


@dataclass(frozen=True, slots=True)
class CopyJob:
    """What is copied where, and how it shows itself."""

    source: Location
    target: Location
    options: CopyKeywords
    resume: bool = False
    quiet: bool = False

    def run(self) -> CopyReport:
        """Copy, and report. Ctrl-C and SIGTERM leave nothing behind; with ``resume``, a checkpoint.

        A connection that is lost for good, and credentials that end midway, keep the checkpoint
        too; every other error ends the copy and clears what it left.
        """
        with stop_on_signals():
            if not self.resume:
                with self._start() as copier:
                    return self._drive(copier, lambda: None, 0)
            return self._run_resumable()

    @property
    def _is_local(self) -> bool:
        return self.source.is_local and self.target.is_local

    def _start(self) -> Copier:
        try:
            return self.source.operator.copier(
                self.source.path, self.target.path, into=self.target.operator, **self.options
            )
        except Unsupported as error:
            other = self.source.operator.scheme != self.target.operator.scheme
            if other or "stream=True" in (error.hint or ""):
                error.hint = "With --stream the bytes pass through this machine instead."
            raise

    def _run_resumable(self) -> CopyReport:
        kept = CheckpointFile.of(self.source.identity, self.target.identity)
        with kept.lock():
            copier, resumed = self._resume(kept)
            saver = _Saver(kept, copier)
            try:
                copied = self._drive(copier, saver.save_sometimes, resumed)
            except KeyboardInterrupt:
                saver.pause()
                say(f"stopped after {size(copier.progress.copied)}; go on with: {_command()}")
                raise typer.Exit(INTERRUPTED) from None
            except Unavailable:
                saver.pause()
                say(f"the other side is lost; go on later with: {_command()}")
                raise
            except PermissionDenied as error:
                if isinstance(error, StateFolderDenied):
                    # Without a checkpoint nobody could go on, so nothing is kept for it.
                    self._give_up(copier, kept, error)
                    raise
                # Credentials that have expired could not clear up either: the parts would leak.
                saver.pause()
                say(f"access ended midway; with new credentials go on with: {_command()}")
                raise
            except BaseException as error:
                self._give_up(copier, kept, error)
                raise
            kept.remove()
            return copied

    def abort(self) -> bool:
        """Remove what an earlier copy has left, and its checkpoint; False where there is none."""
        kept = CheckpointFile.of(self.source.identity, self.target.identity)
        with kept.lock():
            envelope = kept.read()
            if envelope is None:
                return False
            try:
                self._clear(envelope)
            except CheckpointInvalid as error:
                error.hint = (
                    f"Remove what it left with: calque sweep {shlex.quote(self.target.uri)}"
                )
                kept.remove()
                raise
            kept.remove()
            return True

    def _give_up(self, copier: Copier, kept: CheckpointFile, error: BaseException) -> None:
        copier.__exit__(type(error), error, None)
        kept.remove()

    def _resume(self, kept: CheckpointFile) -> tuple[Copier, int]:
        """The copier to drive, and how much an earlier process had copied already."""
        envelope = kept.read()
        if envelope is not None:
            try:
                copier = self.source.operator.resume(
                    self._read_checkpoint(envelope), into=self.target.operator, **self.options
                )
                return copier, next(copier, 0)  # the first step reports what was there
            except CheckpointInvalid as error:
                say(f"cannot go on where it stopped, so it starts anew: {error.message}")
                with suppress(CalqueError):  # what is damaged leads to nothing; a sweep finds it
                    self._clear(envelope)
                kept.remove()
        copier = self._start()
        copier.checkpoint()  # says at once, before anything is written, when it cannot be resumed
        return copier, 0

    def _clear(self, envelope: bytes) -> None:
        """Remove what the copy of a checkpoint has left at the target."""
        services = self.source.operator.service, self.target.operator.service
        abort_copy(*services, self._read_checkpoint(envelope))

    def _read_checkpoint(self, envelope: bytes) -> Checkpoint:
        checkpoint = Checkpoint.from_json(envelope)
        if (checkpoint.source_path, checkpoint.target_path) != (self.source.path, self.target.path):
            # It would make, or clear away, another target than the one that was asked for.
            raise CheckpointInvalid("the checkpoint that is kept for this copy is of another one")
        return checkpoint

    def _drive(self, copier: Copier, after_step: Callable[[], None], resumed: int) -> CopyReport:
        begun = time.monotonic()
        size = copier.source.size
        with (
            tracing.span("copy", path=copier.source.path, bytes=size, route=copier.route),
            self._progress(copier) as show,
            self._noted(copier) as tell,
        ):
            for _ in copier:
                show()
                tell(copier.progress.copied)
                after_step()
        return CopyReport(
            source=self.source.uri,
            target=self.target.uri,
            bytes=copier.progress.copied,
            seconds=time.monotonic() - begun,
            route="locally" if self._is_local else copier.route,
            resumed_from=resumed,
            metadata=copier.metadata,
            source_metadata=copier.source,
        )

    @contextmanager
    def _noted(self, copier: Copier) -> Iterator[Callable[[int], None]]:
        """A note that others can look at while a large copy is made, or when it was left."""
        if copier.source.size < WORTH_A_NOTE:
            yield lambda done: None
            return
        note = note_copy(
            (self.source.uri, self.source.identity),
            (self.target.uri, self.target.identity),
            copier.source.size,
            command=sys.argv[1:],
            resumable=self.resume,
        )
        is_over = False
        try:
            yield note.tell
            is_over = True
        finally:
            note.end(copier.progress.copied, keep=self.resume and not is_over)

    @contextmanager
    def _progress(self, copier: Copier) -> Iterator[Callable[[], None]]:
        """A bar on a terminal; a line now and then elsewhere; nothing when quiet."""
        if self.quiet:
            yield lambda: None
        elif sys.stderr.isatty():
            with byte_bar(self.target.name, copier.progress.total) as bar:
                task = bar.tasks[0].id
                bar.update(task, completed=copier.progress.copied)
                yield lambda: bar.update(task, completed=copier.progress.copied)
        else:
            yield _Lines(copier).show


class _Saver:
    """Writes the checkpoint of a running copy: after its first step, then every few seconds."""

    def __init__(self, kept: CheckpointFile, copier: Copier) -> None:
        self._kept = kept
        self._copier = copier
        self._saved = float("-inf")

    def save_sometimes(self) -> None:
        if time.monotonic() - self._saved >= _SAVE_SECONDS:
            self._kept.write(self._copier.checkpoint())
            self._saved = time.monotonic()

    def pause(self) -> None:
        self._kept.write(self._copier.pause())


class _Lines:
    """Progress for logs and pipes: one line every few seconds."""

    def __init__(self, copier: Copier) -> None:
        self._copier = copier
        self._said = time.monotonic()

    def show(self) -> None:
        if time.monotonic() - self._said < _SAY_SECONDS:
            return
        self._said = time.monotonic()
        progress = self._copier.progress
        of = "" if progress.total is None else f" of {size(progress.total)}"
        share = "" if progress.fraction is None else f" ({progress.fraction:.0%})"
        say(f"copied {size(progress.copied)}{of}{share}")


@contextmanager
def stop_on_signals() -> Iterator[None]:
    """A polite kill or a closed terminal ends a copy as cleanly as Ctrl-C does."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    wanted = [signal.SIGTERM, signal.SIGHUP]
    before = {
        number: signal.signal(number, stop)
        for number in wanted
        if signal.getsignal(number) is not signal.SIG_IGN  # nohup stays nohup
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _command() -> str:
    return shlex.join(["calque", *sys.argv[1:]])
