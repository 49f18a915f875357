"""The memory service keeping versions."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.operator.behaviour.case import Case
from tests.operator.behaviour.cases.memory import open_store


@contextmanager
def open_case() -> Iterator[Case]:
    """With versions."""
    with open_store("behaviour-versions", versions=True) as case:
        yield case
