"""What ``if_match`` takes: the id of a stream of contents, in hexadecimal digits."""

from __future__ import annotations

from calque.errors import ConditionNotMatch

_SIZE = 16


def stream_of(etag: str | None) -> bytes:
    """The stream id of an etag; empty for None.

    What no object can have as etag cannot match: ConditionNotMatch, as for a stale one.
    """
    if etag is None:
        return b""
    try:
        stream = bytes.fromhex(etag)
    except ValueError as error:
        raise ConditionNotMatch(f"no object has the etag {etag!r}") from error
    if len(stream) != _SIZE:
        raise ConditionNotMatch(f"no object has the etag {etag!r}")
    return stream
