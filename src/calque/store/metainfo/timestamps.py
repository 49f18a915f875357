"""Times of messages as those of the calendar, and back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from google.protobuf.timestamp_pb2 import Timestamp

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment_of(at_us: int) -> datetime:
    """Microseconds since 1970, as tokens tell times: exactly, which a float is not."""
    return _EPOCH + timedelta(microseconds=at_us)


def as_datetime(stamp: Timestamp) -> datetime:
    return _EPOCH + timedelta(seconds=stamp.seconds, microseconds=stamp.nanos // 1000)


def as_utc(moment: datetime) -> datetime:
    """The moment with its zone; one without is taken as UTC, wherever this machine stands."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def as_timestamp(moment: datetime | None) -> Timestamp | None:
    """A time for a message."""
    if moment is None:
        return None
    stamp = Timestamp()
    stamp.FromDatetime(as_utc(moment))
    return stamp
