"""The store as a service: SQLite and one folder, with small segments."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from calque.operator import Operator
from calque.store.open_project import open_project
from tests.operator.behaviour.case import Case

INLINE = 4096


@contextmanager
def open_case() -> Iterator[Case]:
    """One store for the session, a root in one of its buckets for each test."""
    with tempfile.TemporaryDirectory() as folder:
        with open_project(folder) as project:
            project.create_bucket("behaviour")
        yield Case(
            "calque",
            lambda root: Operator.from_uri(f"calque://behaviour/{root}", project=folder),
            None,
            INLINE,
        )
