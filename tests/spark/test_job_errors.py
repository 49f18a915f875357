"""What becomes of Spark's words for worker processes that never came to life."""

from __future__ import annotations

import pytest

from calque.errors import CalqueError, ConfigInvalid, Unavailable
from calque.spark.job_errors import translate_job_error


@pytest.mark.parametrize(
    ("text", "kind", "told"),
    [
        (
            'java.io.IOException: Cannot run program "/opt/python": Exec failed, error: 2',
            ConfigInvalid,
            "cannot run '/opt/python'",
        ),
        (
            "EOFException occurred while reading the port number from a.daemon's stdout",
            Unavailable,
            "ended as it began",
        ),
        (
            "IOException: Stream closed\n\tat java.lang.ProcessBuilder$NullOutputStream.write",
            Unavailable,
            "Python workers was killed",
        ),
        (
            "Bad data in a.daemon's standard output. Invalid port number/socket path:\n  17 (0x68)",
            ConfigInvalid,
            "prints when it starts",
        ),
    ],
)
def test_workers_that_do_not_start(text: str, kind: type[CalqueError], told: str) -> None:
    """A Python that is not there names the setting; a daemon that dies may live the next time.

    What prints to its output is not told as a failure without words.
    """
    found = translate_job_error(RuntimeError(text))
    assert isinstance(found, kind)
    assert told in found.message
