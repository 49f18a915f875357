"""The limits of a project are exact, however usage is spread and limits are changed."""

from __future__ import annotations

import random

import pytest

from calque.errors import ResourceExhausted
from calque.store.metabase.accounts import quota
from calque.store.metabase.accounts.projects import (
    create_project,
    project_usage_of,
    set_limits,
)
from calque.store.metabase.accounts.quota import Usage
from calque.store.metabase.engine.database import Database


def charge(database: Database, project_id: bytes, more: Usage) -> bool:
    """Whether the charge was taken."""
    try:
        database.write(lambda transaction: quota.charge(transaction, project_id, more))
    except ResourceExhausted:
        return False
    return True


def on_shard(number: int) -> None:
    """Charge as another thread would."""
    quota._thread.number = number


@pytest.fixture(autouse=True)
def own_shard() -> object:
    """Give the thread its shard back."""
    before = quota.my_shard("postgresql")
    yield
    on_shard(before)


def test_a_lowered_limit_stays_lowered(database: Database) -> None:
    """Beyond it nothing is taken up again, by whatever shard, until usage is below."""
    project = create_project(database, "p", limit_bytes=100, limit_segments=10).id
    on_shard(0)
    assert charge(database, project, Usage(100, 1, 1))
    set_limits(database, project, limit_bytes=50, limit_segments=10)
    # Fewer bytes in more segments: allowed, and no reason to forget the limit.
    assert charge(database, project, Usage(-10, 2, 0))
    for shard in range(4):
        on_shard(shard)
        assert not charge(database, project, Usage(5, 0, 0))
        assert charge(database, project, Usage(-5, 0, 0))
        assert not charge(database, project, Usage(5, 0, 0))
    assert project_usage_of(database, project).bytes == 70
    assert charge(database, project, Usage(-30, 0, 0))
    on_shard(3)
    assert charge(database, project, Usage(10, 0, 0))
    assert not charge(database, project, Usage(1, 0, 0))
    assert charge(database, project, Usage(-50, -3, -1))


@pytest.mark.parametrize("seed", range(6))
def test_limits_against_a_naive_model(database: Database, seed: int) -> None:
    """A charge is taken exactly when no total that it raises goes beyond its limit."""
    chance = random.Random(seed)
    project = create_project(database, "p").id
    used, limits = Usage(), (None, None)
    for _ in range(150):
        on_shard(chance.randrange(16))
        if chance.random() < 0.08:
            limits = (chance.choice([None, 0, 40, 90]), chance.choice([None, 0, 5, 12]))
            set_limits(database, project, limit_bytes=limits[0], limit_segments=limits[1])
        more = Usage(chance.randint(-20, 25), chance.randint(-2, 3), 0)
        expected = all(
            limit is None or extra <= 0 or now + extra <= limit
            for limit, now, extra in zip(limits, used, more, strict=False)
        )
        assert charge(database, project, more) == expected
        if expected:
            used = Usage(used.bytes + more.bytes, used.segments + more.segments, 0)
        assert project_usage_of(database, project) == used
    set_limits(database, project, limit_bytes=None, limit_segments=None)
    left = project_usage_of(database, project)
    assert charge(database, project, Usage(-left.bytes, -left.segments, 0))
