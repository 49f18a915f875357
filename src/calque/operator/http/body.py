"""The bytes of an object as a server sends them: believed only where they fit.

A reply is held against what was asked for: the range, the pin, and, where it brings the whole
object, every checksum that is known of it. Servers that ignore conditions or ranges, and lines that
damage bytes, are found out here, for all clouds alike. After a cut the reading goes on at the same
offset of the same object, so that one checksum covers bytes of several replies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol

from calque.errors import ConditionNotMatch, IntegrityError, Unavailable
from calque.operator.http.digest import Digest
from calque.operator.options import ReadOptions
from calque.values import Backoff, Checksum

_RESUMED_AT_MOST = 5
"""New requests in a row that bring nothing."""
_BACKOFF = Backoff(first=0.1)
_UNSATISFIED = re.compile(r"bytes \*/(\d{1,19})")
_CONTENT_RANGE = re.compile(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19}|\*)")


@dataclass(frozen=True, slots=True)
class OpenReply:
    """A reply of 200 or 206 whose body is still on the wire; ``close`` it in any case."""

    status: int
    headers: Mapping[str, str]
    pieces: Iterator[bytes]
    close: Callable[[], None]

    @property
    def is_partial(self) -> bool:
        """Whether it brings a part. rclone says 200 to a range that it serves, and names it."""
        return self.status == 206 or "content-range" in self.headers


@dataclass(frozen=True, slots=True)
class NothingLeft:
    """The answer to a range that begins behind the last byte (416), and the size that it tells."""

    size: int | None = None

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> NothingLeft:
        found = _UNSATISFIED.fullmatch(headers.get("content-range", "").strip())
        return cls(int(found[1]) if found else None)


class Body(Protocol):
    """One object, as far as its bytes are asked for."""

    @property
    def location(self) -> str: ...

    def open(self, span: str | None, pin: str | None) -> OpenReply | NothingLeft:
        """Send a GET with this ``Range`` and this condition.

        The condition is one that ``pin_of`` has given or the caller has brought.
        """

    def is_pinned_by(self, pin: str, headers: Mapping[str, str]) -> bool:
        """Whether a reply says that it is of the object that the pin names."""

    def pin_of(self, headers: Mapping[str, str]) -> str | None:
        """What a later request names to get the same bytes."""

    def checksums_of(self, headers: Mapping[str, str]) -> Iterable[Checksum]:
        """What a reply says of the whole object's bytes."""


def read(body: Body, options: ReadOptions) -> Iterator[bytes]:
    """The bytes of a range; after a cut it goes on at the same offset of the same bytes."""
    return _Reading(body, options).pieces()


class _Reading:
    """Where a read stands: what came, what must come yet, and of which object."""

    def __init__(self, body: Body, options: ReadOptions) -> None:
        span = options.range
        self._body = body
        self._options = options
        self._position = span.offset
        self._end = None if span.length is None else span.offset + span.length
        self._pin = options.if_match
        self._size: int | None = None
        self._digest: Digest | None = None
        self._idle = 0

    def pieces(self) -> Iterator[bytes]:
        while self._end is None or self._position < self._end:
            reply = self._body.open(self._range_header(), self._pin)
            if isinstance(reply, NothingLeft):
                self._refuse_early_end(reply)
                break
            with closing(reply):
                self._refuse_other(reply.headers)
                try:
                    yield from self._checked_pieces(reply)
                except Unavailable:
                    self._idle += 1
                    # Without a pin the rest could be of another object that took the name
                    # meanwhile.
                    if self._pin in (None, "*") or self._idle > _RESUMED_AT_MOST:
                        raise
                    _BACKOFF.sleep(self._idle)
        self._refuse_damaged()

    def _range_header(self) -> str | None:
        if self._end is None:
            return f"bytes={self._position}-" if self._position else None
        whole = self._position == 0 and self._end == self._size
        return None if whole else f"bytes={self._position}-{self._end - 1}"

    def _checked_pieces(self, reply: OpenReply) -> Iterator[bytes]:
        """The bytes of one reply that were asked for; more or other ones are refused."""
        start, end = self._span(reply)
        if self._options.learn is not None:
            for told in self._body.checksums_of(reply.headers):
                self._options.learn(told)
        if self._position == 0 and end in (None, self._size) and self._options.verify:
            known = (*self._options.checksums, *self._body.checksums_of(reply.headers))
            self._digest = Digest(dict.fromkeys(known))
        skipped = self._position - start
        for piece in reply.pieces:
            if skipped:
                passed, skipped = piece[skipped:], max(0, skipped - len(piece))
                if not passed:
                    continue
                piece = passed
            if end is not None and self._position + len(piece) > end:
                if reply.is_partial:
                    raise self._range_error(f"sent more than the bytes up to {end}")
                piece = piece[: end - self._position]
            self._position, self._idle = self._position + len(piece), 0
            if self._digest is not None:
                self._digest.update(piece)
            if piece:
                yield piece
            if self._position == self._end:
                return
        if not reply.is_partial:
            # The whole object has come to its end, which may be before what was asked for.
            self._end = self._position
        elif self._position < (end or 0):
            raise Unavailable(f"{self._body.location}: the reply ended at byte {self._position}")

    def _span(self, reply: OpenReply) -> tuple[int, int | None]:
        """Which bytes of the object a reply brings, by its own words; refused if not ours."""
        end: int | None
        if reply.is_partial:
            start, end = self._read_content_range(reply.headers)
        else:
            # All of the object: the range was not asked for, or is ignored.
            start, end = 0, _length(reply.headers)
            self._learn_size(end)
        if self._size is not None:
            self._end = self._size if self._end is None else min(self._end, self._size)
        if end is not None and self._end is not None:
            end = min(end, self._end)
        return start, end if end is not None else self._end

    def _read_content_range(self, headers: Mapping[str, str]) -> tuple[int, int]:
        told = headers.get("content-range", "")
        found = _CONTENT_RANGE.fullmatch(told.strip())
        if found is None:
            raise self._range_error(f"answered a range with a part it does not name ({told!r})")
        start, last = int(found[1]), int(found[2])
        size = None if found[3] == "*" else int(found[3])
        if start == self._position == size == last + 1:
            # Azurite's way to say that nothing is left from here on.
            self._learn_size(size)
            return start, size
        beyond = self._end is not None and last >= self._end
        if start != self._position or last < start or beyond or (size is not None and last >= size):
            raise self._range_error(f"answered with other bytes than were asked for ({told!r})")
        length = _length(headers)
        if length is not None and length != last + 1 - start:
            raise self._range_error(f"says {told!r} and sends {length} bytes")
        if size is None and self._end is None:
            raise self._range_error(f"does not say where the object ends ({told!r})")
        self._learn_size(size)
        return start, last + 1

    def _learn_size(self, size: int | None) -> None:
        if size is None:
            return
        if self._size not in (None, size):
            raise self._range_error(f"told {self._size} bytes at first and {size} now")
        self._size = size

    def _refuse_other(self, headers: Mapping[str, str]) -> None:
        """The pin is compared here, since some servers ignore the condition."""
        if self._pin is not None and not self._body.is_pinned_by(self._pin, headers):
            raise ConditionNotMatch(
                f"{self._body.location} was replaced by another object",
                hint="Its bytes are not those that were looked at; look again and read anew.",
            )
        # From here on it is this object and no other, also where any was welcome.
        if self._pin in (None, "*"):
            self._pin = self._body.pin_of(headers) or self._pin

    def _refuse_early_end(self, reply: NothingLeft) -> None:
        self._learn_size(reply.size)
        if self._size is not None and self._position < self._size:
            raise self._range_error(f"knows no bytes from {self._position} of {self._size}")

    def _refuse_damaged(self) -> None:
        broken = self._digest.find_broken() if self._digest is not None else None
        if broken is not None:
            raise checksum_error(self._body.location, *broken)

    def _range_error(self, what: str) -> IntegrityError:
        return IntegrityError(
            f"{self._body.location}: the server {what}",
            hint="It does not serve ranges as HTTP says; read it through another endpoint.",
        )


def checksum_error(location: str, promised: Checksum, found: Checksum) -> IntegrityError:
    """The error for bytes of a whole object that do not have its checksum."""
    return IntegrityError(
        f"{location}: the bytes that came are not those that are stored: their "
        f"{found.algorithm} is {found.value}, not {promised.value}",
        hint="They were damaged on their way, or the server's checksum is wrong. Read again; "
        "a copy with verify='size' takes them as they come.",
    )


def _length(headers: Mapping[str, str]) -> int | None:
    """The length a reply states; a chunked one states none that counts."""
    if "transfer-encoding" in headers:
        return None
    length = headers.get("content-length")
    return int(length) if length else None
