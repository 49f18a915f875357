"""The memory service, with small parts."""

from collections.abc import Iterator
from contextlib import contextmanager

from calque.operator import Operator
from tests.operator.behaviour.case import Case

THRESHOLD, PART = 4096, 1024


@contextmanager
def open_store(name: str, *, versions: bool) -> Iterator[Case]:
    """One store for the session, a root in it for each test."""
    with Operator.from_uri(f"memory://{name}", versions=versions):

        def open_root(root: str) -> Operator:
            return Operator.from_uri(
                f"memory://{name}/{root}", threshold=THRESHOLD, part_size=PART, page_size=7
            )

        yield Case(name, open_root, THRESHOLD, PART)


@contextmanager
def open_case() -> Iterator[Case]:
    """Without versions."""
    with open_store("behaviour", versions=False) as case:
        yield case
