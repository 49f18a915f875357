"""A segment onto its nodes: every node gets its piece, the success threshold decides.

The caller's thread encodes and one thread a node writes. The encoder waits for as many writers as
make a success and for no more: a slow node is given a while after that and then dropped. A node
that does nothing at all for some seconds is dropped at any time, and when all is handed over there
is a deadline for the whole.

Where there are more nodes than pieces, some are spare. While the upload has to wait, the piece of a
node that does nothing goes to a spare one as well, and whoever is done first holds it. That takes
the piece from its beginning, which is kept for the first stripes only: a node that falls silent
later is one that the upload can do without, or a reason to fail.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import chain, islice

from calque.errors import Aborted, CalqueError, InvalidInput, TimedOut, Unavailable
from calque.store.chunks import Buffer
from calque.store.nodes.erasure import Coder
from calque.store.nodes.liveness import ANSWER_WITHIN
from calque.store.nodes.node import PieceHolder
from calque.store.nodes.pieces import piece_id
from calque.store.nodes.units import seal_units, stripes_of

_log = logging.getLogger(__name__)

_AHEAD = 16
"""Stripes that a writer may lie behind before the encoder waits for it."""

_KEPT = _AHEAD + 2
"""Stripes of a piece's beginning that are kept for a spare node."""

_CLEANING_UP = 2.0
"""Seconds that writers of a failed upload are waited for."""


Shares = Sequence[Buffer] | Mapping[int, Buffer]
"""What one stripe gives for each piece, by the piece's number."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where one piece goes."""

    number: int
    node: PieceHolder
    token: bytes = field(default=b"", repr=False)
    """The satellite's leave to put the piece there."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long stragglers get once the threshold is met: a share of the time it took so far.

    ``hedge``: seconds after which a spare node is asked for the piece of one that does nothing.
    ``silence``: seconds in which a node must take something of its piece. ``whole``: seconds until
    the threshold must be met, once every byte has been handed over.
    """

    least: float = 0.5
    share: float = 0.5
    hedge: float = 2.0
    silence: float = 20.0
    whole: float = 600.0

    def after(self, elapsed: float) -> float:
        return max(self.least, self.share * elapsed)


def upload_pieces(
    targets: Sequence[Target],
    coder: Coder,
    root_piece_id: bytes,
    blocks: Iterable[bytes],
    *,
    expires: datetime | None = None,
    patience: Patience | None = None,
    spares: Sequence[Target] = (),
) -> list[Target]:
    """Store all pieces of a segment, as :func:`upload_shares` does: enough for a success."""
    redundancy = coder.redundancy
    return upload_shares(
        targets,
        root_piece_id,
        map(coder.encode, stripes_of(blocks, redundancy.stripe_size)),
        success=redundancy.success,
        expires=expires,
        patience=patience,
        spares=spares,
    )


def upload_shares(
    targets: Sequence[Target],
    root_piece_id: bytes,
    stripes: Iterable[Shares],
    *,
    success: int,
    expires: datetime | None = None,
    patience: Patience | None = None,
    spares: Sequence[Target] = (),
) -> list[Target]:
    """Store pieces of a segment from their shares; the targets that hold theirs, one for a piece.

    ``spares`` are further nodes, each with its leave for every piece; one of a node is used.

    Fails with Unavailable, which names every failed node, when fewer than ``success`` nodes took
    their piece; what was stored by then is removed as far as the nodes answer. An error out of
    ``stripes`` passes through, after the same cleaning up.
    """
    if len(targets) < success:
        raise InvalidInput(f"{success} nodes must take a piece and only {len(targets)} are offered")
    upload = _Upload(targets, spares, root_piece_id, expires, patience or Patience(), success)
    return upload.run(stripes)


def discard_pieces(held: Sequence[Target], root_piece_id: bytes) -> None:
    """Remove the pieces of a segment that nobody will commit, as far as the nodes answer."""
    for target in held:
        _discard(target.node, piece_id(root_piece_id, target.node.id, target.number))


def _discard(node: PieceHolder, piece: bytes) -> None:
    try:
        node.liveness.run_within(ANSWER_WITHIN, partial(node.discard, piece))
    except TimedOut as error:
        _log.warning("node %s keeps piece %s: %s", node.name, piece.hex(), error)


class _Writer(threading.Thread):
    """Writes one piece from its own queue of shares."""

    def __init__(
        self, target: Target, piece: bytes, expires: datetime | None, changed: threading.Condition
    ) -> None:
        super().__init__(name=f"piece-{target.number}", daemon=True)
        self.target, self.piece = target, piece
        self._expires = expires
        self._changed = changed
        self.queue: deque[Buffer | None] = deque()
        self.beginning: list[Buffer | None] | None = []
        """All that was offered so far, while it is little; None from then on."""
        self.has_substitute = False
        self.stopped = False
        self.done = False
        self.error: CalqueError | None = None
        self.moved = time.monotonic()
        self._idle = False

    @property
    def alive(self) -> bool:
        return self.error is None and not self.stopped

    def run(self) -> None:
        error = None
        try:
            self.target.node.write(
                self.piece,
                seal_units(self.piece, self._shares()),
                self._expires,
                token=self.target.token,
            )
        except CalqueError as failure:
            error = failure
        except Exception as failure:
            error = Unavailable(f"node {self.target.node.name} failed: {failure}")
        with self._changed:
            # Decided under the lock: either the upload counts this piece, or it is removed below.
            if not self.stopped:
                self.error, self.done = error, error is None
            late = error is None and self.stopped
            self.queue.clear()
            self._changed.notify_all()
        if late:  # written after it was given up: no row will ever name it
            self.target.node.discard(self.piece)

    def offer(self, share: Buffer | None) -> None:
        self.queue.append(share)
        if self.beginning is not None:
            self.beginning.append(share)
            if len(self.beginning) > _KEPT:
                self.beginning = None

    def silent_since(self, moment: float) -> bool:
        """Whether the node has owed us something since then; not when it waits for the source."""
        return self.alive and not self.done and not self._idle and self.moved <= moment

    def _shares(self) -> Iterator[Buffer]:
        while True:
            with self._changed:
                self._idle = True
                self._changed.wait_for(lambda: self.queue or self.stopped)
                self._idle, self.moved = False, time.monotonic()
                if self.stopped:
                    # An error, not an end: the node must not keep a piece that is cut short.
                    raise Aborted("the upload of this piece was stopped")
                share = self.queue.popleft()
                self._changed.notify_all()
            if share is None:
                return
            yield share


class _Upload:
    """One segment on its way to several nodes."""

    def __init__(
        self,
        targets: Sequence[Target],
        spares: Sequence[Target],
        root_piece_id: bytes,
        expires: datetime | None,
        patience: Patience,
        success: int,
    ) -> None:
        self._root = root_piece_id
        self._expires = expires
        self._success = success
        self._patience = patience
        self._changed = threading.Condition()
        self._targets = targets
        self._writers: list[_Writer] = []
        self._spares: dict[bytes, dict[int, Target]] = {}
        for target in spares:
            self._spares.setdefault(target.node.id, {})[target.number] = target

    def _make_writer(self, target: Target) -> _Writer:
        piece = piece_id(self._root, target.node.id, target.number)
        writer = _Writer(target, piece, self._expires, self._changed)
        if not self._spares:
            writer.beginning = None  # nobody could be given it
        return writer

    def run(self, stripes: Iterable[Shares]) -> list[Target]:
        # Of a short segment all is handed over before its writers begin: none of them waits then,
        # and is woken again, for what is there in a moment.
        coming: Iterator[Shares | None] = chain(stripes, (None,))
        handed = list(islice(coming, 2))
        started = time.monotonic()
        self._writers = [self._make_writer(target) for target in self._targets]
        for shares in handed:
            self._offer(shares)
        try:
            for writer in self._writers:
                writer.start()
            for shares in coming:
                self._offer(shares)
            return self._settle(started)
        except BaseException:
            self._undo()
            raise

    def _offer(self, shares: Shares | None) -> None:
        """One stripe (None: the end) to every living writer, once enough of them keep up."""
        with self._changed:
            self._wait(lambda: self._count_ready() >= self._success)
            self._substitute_failed()
            for writer in self._writers:
                # Of one that failed only the beginning is of use.
                if writer.alive or (writer.beginning is not None and not writer.has_substitute):
                    writer.offer(shares[writer.target.number] if shares else None)
            self._changed.notify_all()

    def _settle(self, started: float) -> list[Target]:
        patience = self._patience
        with self._changed:
            self._wait(
                lambda: self._count_done() >= self._success, time.monotonic() + patience.whole
            )
            grace = patience.after(time.monotonic() - started)
            self._changed.wait_for(lambda: not self._has_running(), timeout=grace)
            for writer in self._writers:
                if writer.alive and not writer.done:
                    # It may still be slow and well, so it only counts as silent after a while.
                    writer.target.node.liveness.leave_behind(writer, patience.silence)
            held: dict[int, _Writer] = {}
            for writer in self._writers:
                if writer.done:
                    held.setdefault(writer.target.number, writer)
            self._stop()
            doubled = [each for each in self._writers if each.done and each not in held.values()]
        for writer in doubled:  # a node and its substitute have both got through
            _discard(writer.target.node, writer.piece)
        return [writer.target for writer in held.values()]

    def _wait(self, met: Callable[[], bool], deadline: float = math.inf) -> None:
        """Until ``met``; Unavailable when it cannot be any more. Silent nodes are dropped."""
        silence = self._patience.silence
        while not met():
            now = time.monotonic()
            for writer in self._writers:
                late = writer.alive and not writer.done and now >= deadline
                if late or writer.silent_since(now - silence):
                    self._drop(writer)
            self._substitute_failed()
            self._hedge(now - self._patience.hedge)
            self._refuse_if_hopeless()
            # Nobody notifies when a node goes silent, so the clock is looked at now and then.
            often = min(silence, self._patience.hedge if self._spares else math.inf) / 4
            self._changed.wait(min(often, max(deadline - now, 0)))

    def _substitute_failed(self) -> None:
        for writer in [*self._writers]:
            if writer.error is not None:
                self._substitute(writer)

    def _hedge(self, since: float) -> None:
        """Give pieces of nodes that are silent since then to spare ones too.

        No more than a success needs, those of the longest silence first: on a busy machine a node
        may only seem to be silent, and spare ones are few.
        """
        silent = [each for each in self._writers if each.silent_since(since)]
        busy = {each.target.number for each in self._writers if each.alive and each not in silent}
        needed = self._success - len(busy)
        for writer in sorted(silent, key=lambda each: each.moved):
            if needed <= 0:
                return
            needed -= self._substitute(writer)

    def _substitute(self, writer: _Writer) -> bool:
        """Have a spare node take the piece too; False where there is none, or it is too late."""
        if not self._spares or writer.has_substitute or writer.beginning is None:
            return False
        spare = self._spares.pop(next(iter(self._spares)))
        fresh = self._make_writer(spare[writer.target.number])
        fresh.queue.extend(writer.beginning)
        fresh.beginning = [*writer.beginning]
        writer.has_substitute, writer.beginning = True, None
        self._writers.append(fresh)
        fresh.start()
        return True

    def _drop(self, writer: _Writer) -> None:
        seconds = time.monotonic() - writer.moved
        writer.error = TimedOut(
            f"node {writer.target.node.name} has not answered for {seconds:.0f} seconds"
        )
        writer.stopped = True
        writer.target.node.liveness.note_silence(writer)
        self._changed.notify_all()

    def _undo(self) -> None:
        """What was written is removed, and writers that can end have ended."""
        with self._changed:
            self._stop()
            written = [writer for writer in self._writers if writer.done]
        for writer in written:
            _discard(writer.target.node, writer.piece)
        # Not for ever: a frozen node's writer never ends, and its piece is swept as an orphan.
        until = time.monotonic() + _CLEANING_UP
        for writer in self._writers:
            if writer.error is None and writer.ident is not None:  # the system may have no thread
                writer.join(max(until - time.monotonic(), 0))

    def _stop(self) -> None:
        for writer in self._writers:
            if not writer.done:
                writer.stopped = True
        self._changed.notify_all()

    def _refuse_if_hopeless(self) -> None:
        if not self._is_hopeless():
            return
        failed = [writer for writer in self._writers if writer.error is not None]
        if len(self._writers) == 1:
            raise failed[0].error or Aborted("the upload of the only piece was stopped")
        error = Unavailable(
            f"only {len(self._writers) - len(failed)} of {len(self._writers)} nodes take pieces, "
            f"{self._success} are needed",
            hint="Nothing was committed; upload again when the nodes are back.",
        )
        for writer in failed:
            error.add_note(f"node {writer.target.node.name}: {writer.error}")
        raise error

    def _is_hopeless(self) -> bool:
        return len({each.target.number for each in self._writers if each.alive}) < self._success

    def _count_ready(self) -> int:
        ready = (each for each in self._writers if each.alive and len(each.queue) < _AHEAD)
        return len({each.target.number for each in ready})

    def _count_done(self) -> int:
        return len({each.target.number for each in self._writers if each.done})

    def _has_running(self) -> bool:
        return any(writer.alive and not writer.done for writer in self._writers)
