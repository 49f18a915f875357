"""Random chaos: loaders killed, frozen and failing at random, files arriving and changing."""

from __future__ import annotations

import random
import time
from collections import Counter

import pytest

from calque.load.protocol import STEPS
from tests.load.loader import LEASE, Place, run, start
from tests.load.world import assert_settled, write_files

ROUNDS = 12


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2))
def test_chaos(place: Place, seed: int) -> None:
    """Whatever happens to loaders while files arrive, in the end each file is there once."""
    dice = random.Random(seed)
    expected: list[int] = []
    for number in range(ROUNDS):
        expected += write_files(place.stage, dice.randint(1, 4), first=number * 10)
        loaders = [
            start(place, f"l{number}-{one}", _fault(dice), batch_files=dice.choice([2, 100]))
            for one in range(dice.randint(1, 3))
        ]
        time.sleep(dice.random() * LEASE)
        if dice.random() < 0.3:
            loaders[0].kill()
        for loader in loaders:
            loader.join(60)
            assert loader.exitcode is not None
    time.sleep(LEASE)
    assert run(place, "last") == 0
    assert_settled(place, expected)
    assert Counter(expected).most_common(1)[0][1] == 1


def _fault(dice: random.Random) -> str:
    if dice.random() < 0.4:
        return ""
    action = dice.choice(["kill", "error", f"pause={2 * LEASE}"])
    return f"{dice.choice(STEPS)}@{dice.randint(1, 2)}:{action}"
