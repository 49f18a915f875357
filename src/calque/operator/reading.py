"""Reads that break off in the middle, and go on."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from calque.errors import CalqueError, ConditionNotMatch, InvalidInput
from calque.operator.options import ReadConditions, ReadOptions
from calque.operator.service import Service
from calque.values import MIB, Backoff, ByteRange, Metadata

_REOPENED = 4
"""Times in a row that a read is opened again without having brought a byte."""
_BACKOFF = Backoff(first=0.1)


def steady(service: Service, path: str, options: ReadOptions) -> Iterator[bytes]:
    """The bytes of a range; where the connection breaks, it goes on from the last byte.

    Only a read that is pinned (by ``if_match`` or ``version``) may go on: without a pin the rest
    could be another object's, so the error is raised. Services that go on by themselves have done
    so already.
    """
    pinned = options.if_match is not None or options.version is not None
    may_reopen = pinned and not service.capability.read_goes_on
    offset, length = options.range.offset, options.range.length
    idle = 0
    while True:
        try:
            for chunk in service.read(path, replace(options, range=ByteRange(offset, length))):
                offset, idle = offset + len(chunk), 0
                length = None if length is None else length - len(chunk)
                yield chunk
            return
        except CalqueError as error:
            idle += 1
            if not may_reopen or not error.retryable or idle > _REOPENED:
                raise
        _BACKOFF.sleep(idle)


def whole(service: Service, path: str, options: ReadOptions) -> bytes:
    """All bytes of a range, read again from its start where an unpinned read breaks off."""
    for attempt in range(1, _REOPENED + 2):
        try:
            return b"".join(steady(service, path, options))
        except CalqueError as error:
            if not error.retryable or attempt > _REOPENED:
                raise
        _BACKOFF.sleep(attempt)
    raise AssertionError("the last round returns or raises")


def pinned_to(service: Service, found: Metadata, span: ByteRange) -> ReadOptions:
    """Options that read exactly the bytes that a stat has found, where the service can pin."""
    can = service.capability
    return ReadOptions(
        range=span,
        if_match=found.pin if can.read_with_if_match or can.read_tells_etag else None,
        version=found.version if can.read_with_version else None,
    )


def refuse_unless(location: str, found: Metadata, unless: ReadConditions) -> None:
    """Raise ConditionNotMatch where an object is not one that a read asks for."""
    for name in unless:
        if name not in ReadConditions.__annotations__:
            raise InvalidInput(f"a read has no condition {name!r}")
    for name in ("if_modified_since", "if_unmodified_since"):
        moment = unless.get(name)
        if moment is not None and (not isinstance(moment, datetime) or moment.tzinfo is None):
            raise InvalidInput(
                f"{name} must be a datetime with a time zone, not {moment!r}",
                hint="For example datetime(2026, 1, 1, tzinfo=UTC).",
            )
    other, changed = unless.get("if_none_match"), found.last_modified
    since, until = unless.get("if_modified_since"), unless.get("if_unmodified_since")
    if other is not None and other in (found.etag, found.pin, "*"):
        raise ConditionNotMatch(f"{location} is still {other}: there is nothing new to read")
    if since is not None and (changed is None or changed <= since):
        raise ConditionNotMatch(f"{location} has not changed since {since}")
    if until is not None and (changed is None or changed > until):
        raise ConditionNotMatch(f"{location} has changed since {until}")


class Reader(io.RawIOBase):
    """An object as a seekable binary file; every read is a range of the pinned bytes."""

    def __init__(self, service: Service, found: Metadata) -> None:
        self._service = service
        self._found = found
        self._position = 0

    @property
    def metadata(self) -> Metadata:
        """The object as it was when it was opened."""
        return self._found

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        bases = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._found.size}
        position = bases[whence] + offset
        if position < 0:
            raise InvalidInput(f"cannot seek to {position}, before the start")
        self._position = position
        return position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        length = min(len(buffer), self._found.size - self._position)
        if length <= 0:
            return 0
        span = ByteRange(self._position, length)
        data = whole(self._service, self._found.path, pinned_to(self._service, self._found, span))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


def open_reader(service: Service, found: Metadata, *, buffer: int = MIB) -> io.BufferedReader:
    """A buffered file over an object: reads ahead ``buffer`` bytes."""
    return io.BufferedReader(Reader(service, found), buffer)
