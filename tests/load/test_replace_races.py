"""``on_changed = replace`` while others load: no row of an earlier version stays behind."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from calque import faults
from tests.load.loader import Place
from tests.load.world import assert_settled, write_file


def _meanwhile(monkeypatch: pytest.MonkeyPatch, step: str, others: Callable[[], None]) -> None:
    """Once, when this thread comes to ``step``, let ``others`` happen first."""
    here, plain, done = threading.current_thread(), faults.point, []

    def point(name: str) -> None:
        if name == step and not done and threading.current_thread() is here:
            done.append(name)
            others()
        plain(name)

    monkeypatch.setattr(faults, "point", point)


def test_rewritten_between_look_and_prepare(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another load rewrites the shared data file while we write: our old rows are found there."""
    for number in (1, 2, 3):
        write_file(place.stage, number)
    place.load()
    rows = write_file(place.stage, 1, generation=1)

    def others() -> None:
        rows.extend(write_file(place.stage, 2, generation=2))
        place.load(on_changed="replace", files=("f00002.csv",))

    _meanwhile(monkeypatch, "prepare.before", others)
    place.load(on_changed="replace", files=("f00001.csv",))
    place.load(on_changed="replace")
    assert_settled(place, [*rows, *write_file(place.stage, 3)], removed=True)
