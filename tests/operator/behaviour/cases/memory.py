"""The memory service, with small parts."""

from collections.abc import Iterator
from contextlib import contextmanager

from calque.operator import Operator
from tests.operator.behaviour.case import Case

THRESHOLD, PART = 4096, 1024


@contextmanager
def open_case() -> Iterator[Case]:
    """One store for the session, a root in it for each test."""
    store = Operator.from_uri("memory://behaviour", versions=True)

    def open_root(root: str) -> Operator:
        return Operator.from_uri(
            f"memory://behaviour/{root}", threshold=THRESHOLD, part_size=PART, page_size=7
        )

    yield Case("memory", open_root, THRESHOLD, PART)
    store.close()
