"""Large objects of a tree: each by a Copier, which can be gone on with, given up, or shared out."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from calque.errors import Aborted, CalqueError, Unsupported
from calque.operator.checkpoint import Checkpoint
from calque.operator.copier import Copier
from calque.operator.copy import copy_parts, resume_copy, start_copy
from calque.operator.layers import Bandwidth
from calque.operator.options import CopyOptions
from calque.operator.service import Service
from calque.transfer.model import Pair
from calque.transfer.plan.side import Side
from calque.transfer.run.copies.copy_keeper import CopyKeeper
from calque.values import Metadata

_ABORT_SECONDS = 10.0
"""How long an abort is waited for, when somebody wants to leave."""
SERVER, CLIENT = "server-side", "through the client"

Spread = Callable[[Checkpoint], None]
"""Lets others bring the parts of an opened copy; returns when all have ended."""


class LargeCopies:
    """Those of one pair of trees. Safe between threads."""

    def __init__(
        self,
        origin: Service,
        target: Side,
        copying: CopyOptions,
        *,
        stopping: threading.Event,
        moved: Callable[[int], None],
        keeper: CopyKeeper | None,
        bandwidth: Bandwidth | None,
    ) -> None:
        self._origin = origin
        self._target = target
        self._copying = copying
        self._stopping = stopping
        self._moved = moved
        self._keeper = keeper
        self._bandwidth = bandwidth
        self._driven: set[Copier] = set()

    def start(self, pair: Pair, source: Metadata, options: CopyOptions) -> Copier:
        """The copier of a large object; where an earlier process was at it, from where it was."""
        origin, into = self._origin, self._target.service
        if self._keeper is not None:
            resumed = self._keeper.resume(pair.path, origin, into, options)
            if resumed is not None:
                return resumed
        return start_copy(origin, source, into, self._target.key(pair.target_path), options)

    def drive(self, path: str, copier: Copier) -> Metadata:
        """Run a copier to its end, or until the run is stopped; what it has made."""
        saver = None if self._keeper is None else self._keeper.saver(path, copier)
        with self._watch(copier), copier:
            for step in copier:
                self._moved(step)
                if self._bandwidth is not None and copier.route != SERVER:
                    self._bandwidth.take(step)
                if saver is not None:
                    saver.save_sometimes()
                if self._stopping.is_set():
                    raise Aborted("the run was stopped in the middle of this object")
        return copier.metadata

    def copy_split(
        self, pair: Pair, source: Metadata, spread: Spread, *, inside: bool
    ) -> tuple[Metadata, str]:
        """What was made of a huge object whose parts others bring, and how: see
        :meth:`Carrier.carry_split`. ``inside``: whether the service is asked to copy it itself."""
        copier, options = self._start_split(pair, source, inside=inside)
        route = SERVER if copier.route == SERVER else CLIENT
        opened = copier.open_parts()
        if opened is None:
            return self.drive(pair.path, copier), route
        if self._keeper is not None:
            # Before any part: whoever finds this run dead must find the upload.
            self._keeper.keep(pair.path, opened)
        origin, into = self._origin, self._target.service
        try:
            spread(opened)
        except CalqueError:
            # What keeps it from being cleared is not what went wrong; a sweep finds the rest.
            with suppress(CalqueError):
                resume_copy(origin, into, opened, options).abort()
            raise
        # Resumed here: parts that the server holds are counted, those that a task lost are copied
        # now, and the upload is committed.
        return self.drive(pair.path, resume_copy(origin, into, opened, options)), route

    def _start_split(
        self, pair: Pair, source: Metadata, *, inside: bool
    ) -> tuple[Copier, CopyOptions]:
        """With the options that a large copy has here: whoever goes on with it must find them."""
        if inside:
            options = replace(self._copying, stream=False)
            with suppress(Unsupported):
                return self.start(pair, source, options), options
        return self.start(pair, source, self._copying), self._copying

    def bring_parts(self, checkpoint: Checkpoint, numbers: Collection[int], concurrent: int) -> int:
        """Some parts of a copy that another process has opened and will commit."""
        origin, into = self._origin, self._target.service
        return copy_parts(origin, into, checkpoint, numbers, concurrent=concurrent)

    @contextmanager
    def _watch(self, copier: Copier) -> Iterator[None]:
        self._driven.add(copier)
        try:
            yield
        finally:
            self._driven.discard(copier)

    def abort(self) -> None:
        """Abort large copies under way, in the middle of what they wait for: nothing is left."""
        aborts = [
            threading.Thread(target=_abort, args=(copier,), daemon=True)
            for copier in tuple(self._driven)
        ]
        for thread in aborts:
            thread.start()
        until = time.monotonic() + _ABORT_SECONDS  # for all of them, however many
        for thread in aborts:
            thread.join(max(0.0, until - time.monotonic()))


def _abort(copier: Copier) -> None:
    with suppress(CalqueError):  # whoever drives it tells what went wrong
        copier.abort()
