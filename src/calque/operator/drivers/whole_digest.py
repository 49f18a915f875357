"""Parts that are read side by side, hashed as the one object that they are cut from.

A range of an object comes without a checksum of its own, so bytes that were damaged on their way
are found only in the whole. Hashes must see bytes in their order: each part waits, once it was
read, until those before it were hashed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from calque.operator.http.digest import Digest
from calque.values import Checksum


class WholeDigest:
    """The checksums of an object under way; parts are numbered from 1. Safe between threads."""

    def __init__(self, known: Iterable[Checksum]) -> None:
        self._known = dict.fromkeys(known)
        self._digest: Digest | None = None
        self._changed = threading.Condition()
        self._begun = 0
        self._hashed = 0
        self._given_up = False

    def learn(self, told: Checksum) -> None:
        """A checksum that a reply tells of the whole; what comes after the first part is late."""
        with self._changed:
            self._known.setdefault(told)

    @contextmanager
    def begin(self, number: int) -> Iterator[None]:
        """Take what a part needs for its work, after those before it have theirs.

        A part that waits for its turn keeps its place among the requests in flight. In any other
        order the one it waits for could be waiting for just that place.
        """
        self._wait_until(lambda: self._begun >= number - 1)
        try:
            yield
        finally:
            with self._changed:
                self._begun = number
                self._changed.notify_all()

    def add(self, number: int, data: bytes) -> None:
        """Hash a part in its turn."""
        self._wait_until(lambda: self._hashed >= number - 1)
        if self._given_up:
            return
        if self._digest is None:
            with self._changed:  # other parts may be learning
                self._digest = Digest(tuple(self._known))
        # Outside of the lock: it is this part's turn, and nobody else's.
        self._digest.update(data)
        with self._changed:
            self._hashed = number
            self._changed.notify_all()

    def give_up(self) -> None:
        """A part has failed, and so has the copy: nobody waits for it any longer."""
        with self._changed:
            self._given_up = True
            self._changed.notify_all()

    @property
    def is_complete(self) -> bool:
        """Whether every part that was begun was hashed: after a failure the whole is not known."""
        return not self._given_up

    def find_broken(self) -> tuple[Checksum, Checksum] | None:
        """A checksum that the bytes do not have, and what they have; None: they have them all."""
        return self._digest.find_broken() if self._digest is not None else None

    def _wait_until(self, ready: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._given_up or ready())
