"""A run of stripes from the nodes: any ``required`` pieces do, the fastest are used.

One thread a piece reads and checks shares. ``required`` readers start; whenever one fails, or a
stripe is not complete within the patience, a reader of a spare piece joins. A slow reader is not
waited for but stays welcome, and one that gives nothing at all for some seconds has failed.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field

from calque.errors import CalqueError, IntegrityError, NotFound, TimedOut, Unavailable
from calque.store.chunks import Buffer
from calque.store.nodes.node import PieceHolder
from calque.store.nodes.pieces import piece_id
from calque.store.nodes.units import Stripes, shares_of

_AHEAD = 16
"""Shares that a reader may hold before it waits to be used."""

PATIENCE = 0.25
"""Seconds that a stripe may take before a spare piece is asked for."""

SILENCE = 20.0
"""Seconds in which a reader must give something."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where one piece lies."""

    number: int
    node: PieceHolder
    token: bytes = field(default=b"", repr=False)
    """The satellite's leave to get the piece."""


def download_stripes(
    sources: Sequence[Source],
    stripes: Stripes,
    root_piece_id: bytes,
    *,
    patience: float = PATIENCE,
    silence: float = SILENCE,
) -> Iterator[Buffer]:
    """The encrypted bytes of a run, stripe by stripe; fails as :func:`download_shares`."""
    gathered = download_shares(sources, stripes, root_piece_id, patience=patience, silence=silence)
    try:
        for stripe, shares in enumerate(gathered, stripes.first):
            yield stripes.coder.decode(shares, stripes.size_of(stripe))
    finally:
        gathered.close()


def download_shares(
    sources: Sequence[Source],
    stripes: Stripes,
    root_piece_id: bytes,
    *,
    patience: float = PATIENCE,
    silence: float = SILENCE,
) -> Generator[dict[int, Buffer], None, None]:
    """``required`` checked shares of each stripe of a run, by piece number.

    Damaged, truncated and missing pieces and silent nodes are passed over while enough others are
    left; otherwise Unavailable (or IntegrityError, when every failure was damage) names them all.
    """
    if not sources:
        raise Unavailable("the satellite names no node for this segment")
    return _Download(sources, stripes, root_piece_id, patience, silence).run()


def _shares(source: Source, stripes: Stripes, root_piece_id: bytes) -> Iterator[Buffer]:
    piece = piece_id(root_piece_id, source.node.id, source.number)
    offset, length = stripes.piece_range
    chunks = source.node.read(piece, offset, length, token=source.token)
    yield from shares_of(piece, chunks, stripes)


class _Reader(threading.Thread):
    """Reads one piece into a short queue of (stripe, share)."""

    def __init__(
        self, source: Source, stripes: Stripes, root_piece_id: bytes, changed: threading.Condition
    ) -> None:
        super().__init__(name=f"piece-{source.number}", daemon=True)
        self.source = source
        self._stripes = stripes
        self._root = root_piece_id
        self._changed = changed
        self.shares: deque[tuple[int, Buffer]] = deque()
        self.stopped = False
        self.error: CalqueError | None = None
        self.moved = time.monotonic()
        self._idle = False

    def run(self) -> None:
        shares = _shares(self.source, self._stripes, self._root)
        try:
            for stripe, share in enumerate(shares, self._stripes.first):
                if not self._hand_over(stripe, share):
                    return
        except CalqueError as error:
            self._fail(error)
        except Exception as error:
            self._fail(Unavailable(f"node {self.source.node.name} failed: {error}"))
        finally:
            shares.close()  # type: ignore[attr-defined]  # a generator

    def at(self, stripe: int) -> Buffer | None:
        """The share of a stripe, if it is here; earlier ones are dropped."""
        while self.shares and self.shares[0][0] < stripe:
            self.shares.popleft()
        return self.shares[0][1] if self.shares and self.shares[0][0] == stripe else None

    def silent_since(self, moment: float) -> bool:
        """Whether the node has owed us something since then; not when its shares wait for us."""
        return self.error is None and not self._idle and self.is_alive() and self.moved <= moment

    def _hand_over(self, stripe: int, share: Buffer) -> bool:
        with self._changed:
            # While it waits for us the node owes nothing, and is not taken for silent.
            self._idle = True
            self._changed.wait_for(lambda: len(self.shares) < _AHEAD or self.stopped)
            self._idle, self.moved = False, time.monotonic()
            self.shares.append((stripe, share))
            self._changed.notify_all()
            return not self.stopped

    def _fail(self, error: CalqueError) -> None:
        with self._changed:
            self.error = self.error or error
            self._changed.notify_all()


class _Download:
    """One run of stripes on its way from several nodes."""

    def __init__(
        self,
        sources: Sequence[Source],
        stripes: Stripes,
        root_piece_id: bytes,
        patience: float,
        silence: float,
    ) -> None:
        self._silence = silence
        self._stripes = stripes
        self._root = root_piece_id
        self._patience = patience
        self._required = stripes.coder.redundancy.required
        self._spare = deque(sources)
        self._readers: list[_Reader] = []
        self._changed = threading.Condition()

    def run(self) -> Generator[dict[int, Buffer], None, None]:
        try:
            for stripe in range(self._stripes.first, self._stripes.last):
                yield self._gather(stripe)
        finally:
            self._stop()

    def _gather(self, stripe: int) -> dict[int, Buffer]:
        """``required`` shares of a stripe, from whoever has them first."""
        with self._changed:
            while True:
                ready = self._ready(stripe)
                if len(ready) >= self._required:
                    chosen = dict(list(ready.items())[: self._required])
                    # Looking for the share dropped earlier ones: their readers have room again.
                    self._changed.notify_all()
                    return chosen
                self._drop_silent()
                self._keep_enough_readers(stripe)
                # Hedged: past the patience one more piece is asked for, and the slow one goes on.
                if not self._changed.wait(self._patience) and self._spare:
                    self._start(stripe)

    def _drop_silent(self) -> None:
        before = time.monotonic() - self._silence
        for reader in self._readers:
            if reader.silent_since(before):
                node = reader.source.node
                reader.error = TimedOut(
                    f"node {node.name} has not answered for {self._silence:g} seconds"
                )
                reader.stopped = True
                node.liveness.note_silence(reader)

    def _ready(self, stripe: int) -> dict[int, Buffer]:
        found = {reader.source.number: reader.at(stripe) for reader in self._readers}
        return {number: share for number, share in found.items() if share is not None}

    def _keep_enough_readers(self, stripe: int) -> None:
        """A failed reader may still hold checked shares of this stripe, but not of later ones."""
        while self._count_usable(stripe) < self._required:
            if not self._spare:
                raise self._failure()
            self._start(stripe)

    def _count_usable(self, stripe: int) -> int:
        return sum(1 for each in self._readers if each.error is None or each.at(stripe) is not None)

    def _start(self, stripe: int) -> None:
        source = self._spare.popleft()
        reader = _Reader(source, self._stripes.from_stripe(stripe), self._root, self._changed)
        self._readers.append(reader)
        reader.start()

    def _stop(self) -> None:
        with self._changed:
            for reader in self._readers:
                reader.stopped = True
                reader.shares.clear()
            self._changed.notify_all()

    def _failure(self) -> CalqueError:
        failed = [reader for reader in self._readers if reader.error is not None]
        usable = len(self._readers) - len(failed)
        if self._stripes.coder.redundancy.plain and failed:
            return _only_failure(failed[0].error)
        damaged = bool(failed) and all(isinstance(each.error, IntegrityError) for each in failed)
        kind = IntegrityError if damaged else Unavailable
        error = kind(
            f"the segment needs {self._required} pieces and only {usable} of "
            f"{len(self._readers)} can be read"
        )
        for reader in failed:
            error.add_note(
                f"piece {reader.source.number} of node {reader.source.node.name}: {reader.error}"
            )
        return error


def _only_failure(error: CalqueError | None) -> CalqueError:
    """A piece that is missing is not the object missing: callers must not take it for that."""
    if not isinstance(error, NotFound):
        return error or Unavailable("the only piece cannot be read")
    return Unavailable(
        error.message,
        hint="The object is there and its bytes are not: is the disk of the node mounted? "
        "`calque store fsck` lists what is missing.",
    )
