"""Same file? The rules that compare a staged file with its record; pure, no I/O.

Times are microseconds since the epoch.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import NamedTuple

from calque.values import SourceIdentity

SECOND = 1_000_000
DAY = 86_400 * SECOND
GRAIN = 2 * SECOND
"""The coarsest grain of modification times in use (FAT, some network file systems)."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)


class Known(NamedTuple):
    """What the ledger knows of a loaded file; the fields that comparing needs."""

    location: str
    size: int
    etag: str | None
    last_modified: int | None
    version: str | None
    token: str | None
    content_hash: str | None
    verified_at: int
    """When the bytes were last known to be these: the claim of the load, or a check by hash."""
    expires_at: int
    load_id: str


class Verdict(Enum):
    """The answer to "same file?"."""

    SAME = "same"
    DIFFERENT = "different"
    CHECK = "check"
    """Cannot be told from metadata: same if the content hash is the recorded one."""


def micros(moment: datetime | None) -> int | None:
    """A moment as microseconds; a naive one is taken as UTC."""
    if moment is None:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _TICK


def moment(stamp: int | None) -> datetime | None:
    """The inverse of :func:`micros`."""
    return None if stamp is None else _EPOCH + timedelta(microseconds=stamp)


def is_racy(known: Known) -> bool:
    """The file may have changed after it was read without its time stamp telling.

    File systems count time in steps of up to two seconds. Without an etag, a write of equal length
    in the same step as the load leaves nothing that differs.
    """
    if known.etag is not None or known.last_modified is None:
        return False
    return known.last_modified + GRAIN >= known.verified_at


def judge(known: Known, found: SourceIdentity) -> Verdict:
    """Is the staged file the one that was loaded?

    Both etags present: they decide. Otherwise length and modification time do. Where these differ,
    but the length is equal and a content hash is recorded, the content is compared: the same bytes
    with a new etag or time are not loaded again.
    """
    if known.etag is not None and known.etag == found.etag:
        return Verdict.SAME
    if known.size != found.size:
        return Verdict.DIFFERENT
    if known.etag is not None and found.etag is not None:
        return _judge_by_content(known)
    if known.last_modified is None or known.last_modified != micros(found.last_modified):
        return _judge_by_content(known)
    if is_racy(known):
        return _judge_racy(known, found)
    return Verdict.SAME


def _judge_by_content(known: Known) -> Verdict:
    return Verdict.CHECK if known.content_hash is not None else Verdict.DIFFERENT


def _judge_racy(known: Known, found: SourceIdentity) -> Verdict:
    """Hash if there is one; else the token (inode and change time) is the last word."""
    if known.content_hash is not None:
        return Verdict.CHECK
    if known.token is not None and found.token is not None and known.token != found.token:
        return Verdict.DIFFERENT
    return Verdict.SAME


def is_stale(known: Known, found: SourceIdentity) -> bool:
    """The same bytes, written again: the record's version or time is no longer the file's."""
    if found.version is not None and found.version != known.version:
        return True
    return found.last_modified is not None and micros(found.last_modified) != known.last_modified


def is_settled(known: Known, found: SourceIdentity, renew_before: int) -> bool:
    """The same by :func:`judge`, not stale, and its record lives on: nothing is left to ask.

    The answer for nearly every file of a stage that was loaded before, at one go.
    """
    stamp = micros(found.last_modified)
    if (
        known.expires_at < renew_before
        or (stamp is not None and stamp != known.last_modified)
        or (found.version is not None and found.version != known.version)
    ):
        return False
    if known.etag is not None:
        return known.etag == found.etag
    return stamp is not None and known.size == found.size and not is_racy(known)


def needs_renewal(known: Known, now: int, life: int) -> bool:
    """Less than a quarter of its life is left: the file is evidently still staged, keep it."""
    return known.expires_at - now < life // 4


def is_uncertain(
    found: SourceIdentity,
    first_load: int | None,
    now: int,
    life: int,
    forgotten: int | None = None,
) -> bool:
    """No record, but there may have been one: file and first load are older than records live.

    ``forgotten`` is the youngest time stamp of which a record was dropped: by it the answer does
    not depend on anybody's clock, neither now nor when that was done.
    """
    modified = micros(found.last_modified)
    if modified is None:
        return False
    if forgotten is not None and modified <= forgotten:
        return True
    return first_load is not None and max(modified, first_load) < now - life
