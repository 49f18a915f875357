"""``on_changed = replace`` while others load: no row of an earlier version stays behind."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from calque import faults
from tests.loader.loader import Place
from tests.loader.world import assert_settled, write_file


def _meanwhile(
    monkeypatch: pytest.MonkeyPatch, step: str, others: Callable[[], None], *, who: str = ""
) -> None:
    """Once, when this thread (or the one called ``who``) comes to ``step``, ``others`` go first."""
    plain, done = faults.point, []
    name = who or threading.current_thread().name

    def point(reached: str) -> None:
        if reached == step and not done and threading.current_thread().name == name:
            done.append(reached)
            others()
        plain(reached)

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


@pytest.mark.parametrize("force", [False, True])
def test_loaded_between_look_and_claim(
    place: Place, monkeypatch: pytest.MonkeyPatch, force: bool
) -> None:
    """A load of the version before ends after we looked: its rows are not left either."""
    write_file(place.stage, 1)
    place.load()
    write_file(place.stage, 1, generation=1)
    prepared, looked = threading.Event(), threading.Event()

    def hold() -> None:
        prepared.set()
        assert looked.wait(60)

    def load() -> None:
        place.load(on_changed="replace", lease_seconds=60)

    earlier = threading.Thread(target=load, name="earlier")
    _meanwhile(monkeypatch, "commit.before", hold, who="earlier")
    earlier.start()
    assert prepared.wait(60)
    rows = write_file(place.stage, 1, generation=2)

    def others() -> None:
        looked.set()
        earlier.join(60)

    _meanwhile(monkeypatch, "claim.before", others)
    place.load(on_changed="replace", lease_seconds=60, force=force)
    if not force:  # it was refused the file, since another load was quicker
        place.load(on_changed="replace")
    assert_settled(place, rows, removed=True)
