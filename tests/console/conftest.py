"""One console and one browser for all tests of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from playwright.sync_api import Browser

from calque.errors import Unavailable
from tests.console.world import Visitor, World, console_world
from tests.servers.chromium import chromium


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A served console over a store and a ledger with something in them."""
    with console_world(tmp_path_factory.mktemp("console")) as made:
        yield made


@pytest.fixture(scope="session")
def visitor(world: World) -> Visitor:
    """One who is signed in and speaks plain HTTP."""
    return world.visitor()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A real browser; its tests are skipped, with the reason, where there is none."""
    with ExitStack() as stack:
        try:
            running = stack.enter_context(chromium())
        except Unavailable as error:
            pytest.skip(f"Chromium cannot be had: {error}")
        yield running
