"""One gateway for a module: tests use buckets of their own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.world import World, gateway_world


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A served gateway over a new store."""
    with gateway_world(tmp_path_factory.mktemp("store") / "data") as made:
        yield made


@pytest.fixture(scope="module")
def client(world: World) -> Any:
    """boto3 with the key to everything."""
    return world.client()


@pytest.fixture
def bucket(world: World) -> str:
    """A new bucket."""
    name = f"b{uuid.uuid4().hex[:12]}"
    world.project.create_bucket(name)
    return name
