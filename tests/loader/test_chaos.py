"""Random chaos: loaders killed, frozen and failing at random, files arriving and changing."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from itertools import chain

import pytest

from calque.loader.commit.protocol import STEPS
from tests.loader.loader import LEASE, Place, run, start
from tests.loader.world import assert_settled, write_file, write_files

ROUNDS = 12


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2))
def test_chaos(place: Place, seed: int) -> None:
    """Whatever happens to loaders while files arrive, in the end each file is there once."""
    dice = random.Random(seed)
    expected: list[int] = []
    for number in _rounds(place, dice, "reload"):
        expected += write_files(place.stage, dice.randint(1, 4), first=number * 10)
    assert_settled(place, expected)


@pytest.mark.soak
def test_chaos_of_changes(place: Place) -> None:
    """Whatever happens while files change, in the end the table has what they hold now."""
    dice = random.Random(7)
    held: dict[int, list[int]] = {}
    for number in _rounds(place, dice, "replace"):
        names = [number, *dice.sample(sorted(held), min(len(held), 2))]
        for name in names:
            held[name] = write_file(place.stage, name, generation=number)
    assert_settled(place, list(chain(*held.values())), removed=True)


def _rounds(place: Place, dice: random.Random, on_changed: str) -> Iterator[int]:
    """Rounds in which loaders have their accidents while the caller stages; all is well after."""
    yield 0
    for number in range(1, ROUNDS):
        options = {"batch_files": dice.choice([2, 100]), "on_changed": on_changed}
        loaders = [
            start(place, f"l{number}-{one}", _fault(dice), **options)
            for one in range(dice.randint(1, 3))
        ]
        time.sleep(dice.random() * LEASE)
        yield number
        if dice.random() < 0.3:
            loaders[0].kill()
        for loader in loaders:
            loader.join(60)
            assert loader.exitcode is not None
    time.sleep(LEASE)
    assert run(place, "last", on_changed=on_changed) == 0


def _fault(dice: random.Random) -> str:
    if dice.random() < 0.4:
        return ""
    action = dice.choice(["kill", "error", f"pause={2 * LEASE}"])
    return f"{dice.choice(STEPS)}@{dice.randint(1, 2)}:{action}"
