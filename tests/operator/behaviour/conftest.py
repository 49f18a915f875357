"""Every behaviour test runs over every service; it is skipped only by declared capability."""

from __future__ import annotations

import importlib
import pkgutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache

import pytest

from calque.operator import Operator
from tests.operator.behaviour import cases
from tests.operator.behaviour.case import Case

NAMES = sorted(module.name for module in pkgutil.iter_modules(cases.__path__))
PARAMS = [
    # A slow server, or one more of a kind, is tried by `make soak` only.
    pytest.param(name, marks=pytest.mark.soak) if name.endswith("_soak") else name
    for name in NAMES
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Kills at every request are tried on S3's other server; on the gateway by `make soak` only.

    So are parts through the client on Google's server that rewrites in steps: none is rewritten.
    """
    for item in items:
        if "test_killed" in item.nodeid and "[s3_gateway" in item.nodeid:
            item.add_marker(pytest.mark.soak)
        if "test_streamed_parts" in item.nodeid and "[gcs_steps" in item.nodeid:
            item.add_marker(pytest.mark.soak)


@pytest.fixture(scope="session")
def open_once() -> Iterator[Callable[[str], Case]]:
    """Opens a case once a session, in whatever order tests ask: its server is started once, and
    one that cannot be had is not looked for again."""
    with ExitStack() as held:

        @cache
        def try_to_open(name: str) -> Case | str:
            module = importlib.import_module(f"{cases.__name__}.{name}")
            try:
                return held.enter_context(module.open_case())
            except pytest.skip.Exception as skipped:
                return str(skipped)

        def open_case(name: str) -> Case:
            found = try_to_open(name)
            return found if isinstance(found, Case) else pytest.skip(found)

        yield open_case


@pytest.fixture(scope="session", params=PARAMS)
def case(request: pytest.FixtureRequest, open_once: Callable[[str], Case]) -> Case:
    """A service under test; its server lives as long as the session."""
    return open_once(request.param)


@pytest.fixture
def op(case: Case) -> Iterator[Operator]:
    """An operator at a root of its own."""
    with case.open(f"t{uuid.uuid4().hex[:12]}") as operator:
        yield operator


@pytest.fixture
def other(case: Case) -> Iterator[Operator]:
    """A second root of the same service."""
    with case.open(f"o{uuid.uuid4().hex[:12]}") as operator:
        yield operator


@pytest.fixture
def need(op: Operator) -> Callable[..., None]:
    """Skips a test where the service does not declare a capability."""

    def check(*names: str) -> None:
        for name in names:
            if not getattr(op.capability, name):
                pytest.skip(f"{op.scheme} declares no {name}")

    return check
