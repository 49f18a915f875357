"""PURGE removes what was loaded and nothing else, at once or by whoever comes next."""

from __future__ import annotations

from collections import Counter

import pytest
from sqlalchemy import select

from calque.ledger import open_ledger
from calque.ledger.schema import purges
from tests.loader.loader import Place, run
from tests.loader.other_writers import write_other
from tests.loader.world import ids, write_files


def test_purge_removes_only_what_was_loaded(place: Place) -> None:
    """PURGE removes loaded sources; one that failed stays."""
    expected = write_files(place.stage, 2)
    place.load(max_files=1, purge=True)
    assert sorted(path.name for path in place.stage.iterdir()) == ["f00001.csv"]
    place.load(purge=True)
    assert list(place.stage.iterdir()) == []
    assert ids(place) == Counter(expected)


def test_purge_empties_its_queue(simple: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many sources a load had, all of them are removed by the statement that says so."""
    monkeypatch.setattr("calque.ledger.purge.FILES_AT_ONCE", 3)
    write_files(simple.stage, 10)
    assert simple.load(purge=True).purged == 10
    assert list(simple.stage.iterdir()) == []
    assert _queue(simple) == 0


def test_purge_leaves_a_replaced_source(simple: Place) -> None:
    """A source that was replaced after its load is no longer ours to remove."""
    expected = write_files(simple.stage, 1)
    path = simple.stage / "f00000.csv"
    assert run(simple, "victim", "purge.before:kill", purge=True) < 0
    write_other(path)
    told = simple.load(on_changed="skip")
    assert told.purged == 0
    assert path.exists()
    assert _queue(simple) == 0
    assert ids(simple) == Counter(expected)


def test_purge_that_fails_is_told_and_stays_queued(simple: Place) -> None:
    """A source that cannot be removed is reported and tried again next time."""
    write_files(simple.stage, 1)
    path = simple.stage / "f00000.csv"
    assert run(simple, "victim", "purge.before:kill", purge=True) < 0
    body = path.read_bytes()
    path.unlink()
    path.symlink_to("f00000.csv")  # a loop: nothing can be told of it
    told = simple.load()
    assert any("could not be removed" in note for note in told.notes)
    assert _queue(simple) == 1
    path.unlink()
    path.write_bytes(body)
    simple.load()
    assert _queue(simple) == 0


def _queue(place: Place) -> int:
    with open_ledger(place.ledger) as ledger, ledger.read() as connection:
        return len(connection.execute(select(purges)).all())
