"""Local files in a temporary folder."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from calque.operator import Operator
from tests.operator.behaviour.case import Case

PART = 1024


@contextmanager
def open_case() -> Iterator[Case]:
    """A folder for the session, a root in it for each test."""
    with tempfile.TemporaryDirectory() as folder:
        yield Case("fs", lambda root: Operator.from_uri(f"{folder}/{root}"), PART, PART)
