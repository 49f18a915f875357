"""One console for all tests of it, and a browser for those that need one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from calque.errors import Unavailable
from tests.console.world import Visitor, World, console_world
from tests.servers.chromium import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A served console over a store and a ledger with something in them."""
    with console_world(tmp_path_factory.mktemp("console")) as made:
        yield made


@pytest.fixture(scope="session")
def visitor(world: World) -> Visitor:
    """One who is signed in and speaks plain HTTP."""
    return world.visitor()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real browser; its tests are skipped, with the reason, where there is none.

    For one module: while Playwright is there, nothing else in this thread may run an event loop.
    """
    with ExitStack() as stack:
        try:
            running = stack.enter_context(chromium())
        except Unavailable as error:
            pytest.skip(f"Chromium cannot be had: {error}")
        yield running
