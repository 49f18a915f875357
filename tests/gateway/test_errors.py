"""The one table from our errors to S3's."""

from __future__ import annotations

import errno
import pickle

import pytest

from calque.errors import (
    CalqueError,
    IntegrityError,
    NotFound,
    RateLimited,
    ResourceExhausted,
    Unavailable,
)
from calque.gateway.errors import CODES, STATUS, S3Error, to_s3_error
from tests.test_errors import every_error


@pytest.mark.parametrize("kind", every_error(), ids=lambda kind: kind.__name__)
def test_every_error_has_a_row(kind: type[CalqueError]) -> None:
    """No class of the tree is missing, and every code has a status."""
    assert CODES[kind] in STATUS
    assert to_s3_error(kind("x")).status >= 400


def test_what_went_wrong_inside_is_not_told() -> None:
    """Strangers learn a code; a retry is asked for in the words of HTTP."""

    class Deeper(NotFound):
        """A class of somebody else's, below one of ours."""

    assert to_s3_error(Deeper("x")).code == "NoSuchKey"
    assert "path/to" not in to_s3_error(CalqueError("/path/to/meta.db")).message
    for wrong in (Unavailable("/path/to/node"), IntegrityError("/path/to/piece")):
        assert "path/to" not in to_s3_error(wrong).message
    assert to_s3_error(ResourceExhausted("the project is full")).message == "the project is full"
    slow = to_s3_error(RateLimited("slow down", retry_after=2.4))
    assert (slow.code, slow.headers) == ("SlowDown", {"Retry-After": "2"})
    assert to_s3_error(Unavailable("x")).status == 503
    for number, code in ((errno.EMFILE, "SlowDown"), (errno.ENOSPC, "InsufficientStorage")):
        by_system = ResourceExhausted("/path/to/piece")
        by_system.__cause__ = OSError(number, "no room")
        told = to_s3_error(by_system)
        assert (told.code, "path/to" in told.message) == (code, False)
    again = pickle.loads(pickle.dumps(S3Error("NoSuchKey", "gone")))
    assert (again.code, again.message) == ("NoSuchKey", "gone")
