"""Reads that break off in the middle, and go on."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from calque.errors import CalqueError, ConditionNotMatch, IntegrityError, InvalidInput
from calque.operator import paths
from calque.operator.options import ReadConditions, ReadKeywords, ReadOptions
from calque.operator.service import Service, require
from calque.values import MIB, Backoff, ByteRange, Metadata

_LARGEST = 2**63 - 1
"""No file system and no service counts further."""
_REOPENED = 4
"""Times in a row that a read is opened again without having brought a byte."""
_BACKOFF = Backoff(first=0.1)


def read_on(service: Service, path: str, options: ReadOptions) -> Iterator[bytes]:
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
                # A byte is progress: the bound is on tries in a row that bring none.
                offset, idle = offset + len(chunk), 0
                length = None if length is None else length - len(chunk)
                yield chunk
            return
        except CalqueError as error:
            idle += 1
            if not may_reopen or not error.retryable or idle > _REOPENED:
                raise
        _BACKOFF.sleep(idle)


def read_all(service: Service, path: str, options: ReadOptions) -> bytes:
    """All bytes of a range, read again from its start where an unpinned read breaks off."""
    for attempt in range(1, _REOPENED + 2):
        try:
            return b"".join(read_on(service, path, options))
        except CalqueError as error:
            if not error.retryable or attempt > _REOPENED:
                raise
        _BACKOFF.sleep(attempt)
    raise AssertionError("the last round returns or raises")


def pinned_options(service: Service, found: Metadata, span: ByteRange) -> ReadOptions:
    """Options that read exactly the bytes that a stat has found, where the service can pin."""
    can = service.capability
    return ReadOptions(
        range=span,
        if_match=found.pin if can.read_with_if_match or can.read_tells_etag else None,
        version=found.version if can.read_with_version else None,
    )


def read_options(service: Service, path: str, keywords: ReadKeywords) -> ReadOptions:
    """What the keywords of a read come to.

    Conditions that services do not keep by themselves are checked here: the object is looked at
    and pinned, so that no other can slip in between the look and the read.
    """
    paths.file_path(path, "read")
    for name in keywords:
        if name not in ReadKeywords.__annotations__:
            raise InvalidInput(f"a read has no keyword {name!r}")
    span = _range_of(keywords.get("offset", 0), keywords.get("length"))
    version, if_match = keywords.get("version"), keywords.get("if_match")
    can = service.capability
    require(service, version is None or can.read_with_version, "read a version")
    require(service, if_match is None or can.read_with_if_match, "read with if_match")
    if any(name in keywords for name in ReadConditions.__annotations__):
        if_match = _pin_allowed(service, path, keywords)
    return ReadOptions(range=span, if_match=if_match, version=version)


def _range_of(offset: int, length: int | None) -> ByteRange:
    for bound in (offset, length if length is not None else 0):
        if not isinstance(bound, int) or bound > _LARGEST:
            raise InvalidInput(f"{bound!r} is no number of bytes that a file could have")
    try:
        return ByteRange(offset, length)
    except ValueError as error:
        raise InvalidInput(str(error)) from error


def _pin_allowed(service: Service, path: str, keywords: ReadKeywords) -> str | None:
    """The pin of the object as it is, where the conditions allow to read it."""
    require(service, service.capability.read_with_if_match, "pin what it has looked at")
    found = service.stat(path, version=keywords.get("version"))
    if keywords.get("if_match") not in (None, found.pin):
        raise ConditionNotMatch(f"{service.location(path)} is another object")
    _refuse_unless(service.location(path), found, keywords)
    return found.pin


def _refuse_unless(location: str, found: Metadata, unless: ReadKeywords) -> None:
    """Raise ConditionNotMatch where an object is not one that a read asks for."""
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
        data = read_all(
            self._service, self._found.path, pinned_options(self._service, self._found, span)
        )
        if len(data) != length:
            # A file that ends early would pass for a whole one.
            raise IntegrityError(
                f"{self._service.location(self._found.path)} gave {len(data)} bytes at "
                f"{self._position}, not {length}",
                hint="It became shorter since it was opened, or the server lost some: open it "
                "again.",
            )
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


def open_reader(service: Service, found: Metadata, *, buffer: int = MIB) -> io.BufferedReader:
    """A buffered file over an object: reads ahead ``buffer`` bytes."""
    return io.BufferedReader(Reader(service, found), buffer)
