"""No row depends on a clock: loaders far behind or ahead double nothing and lose nothing."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from itertools import product

import pytest
from sqlalchemy import select

from calque.config import Settings
from calque.ledger import open_ledger
from calque.ledger.identity import DAY
from calque.ledger.schema import files
from calque.loader.after.expire import expire
from calque.loader.model.outcome import Status
from tests.loader.loader import Place
from tests.loader.world import ids, write_file, write_files

FAR = 70


def clock(days: float) -> Callable[[], int]:
    """A clock that is so many days ahead of the world."""
    return lambda: time.time_ns() // 1000 + int(days * DAY)


@pytest.mark.parametrize(("first", "second"), list(product((-FAR, 0, FAR), repeat=2)))
def test_records_do_not_depend_on_clocks(simple: Place, first: int, second: int) -> None:
    """What one loader recorded another knows, whatever time each of them believes in."""
    expected = write_files(simple.stage, 2)
    assert simple.load(clock=clock(first)).files_loaded == 2
    for days in (second, 0):
        told = simple.load(clock=clock(days))
        assert told.files.counts == {"SKIPPED_LOADED": 2}
    assert ids(simple) == Counter(expected)


@pytest.mark.parametrize("days", [-FAR, FAR])
def test_what_a_wrong_clock_expires_is_not_loaded_again(place: Place, days: int) -> None:
    """Records that go by a clock that is wrong, or were made by one, leave no file that is new."""
    expected = write_files(place.stage, 1)
    behind, ahead = (clock(days), clock(0)) if days < 0 else (clock(0), clock(days))
    place.load(clock=behind)
    with open_ledger(place.ledger, clock=ahead) as ledger:
        expire(Settings(), ledger)
    for now in (ahead, behind, clock(0)):
        assert place.load(clock=now).files_loaded == 0
    assert ids(place) == Counter(expected)


def test_an_old_file_of_a_loader_that_is_behind(simple: Place) -> None:
    """A file that kept an old time stamp is uncertain once its record is gone, and never new."""
    expected = write_files(simple.stage, 1)
    simple.load()
    expected += write_file(simple.stage, 1)
    old = time.time() - 100 * 86_400
    os.utime(simple.stage / "f00001.csv", (old, old))
    assert simple.load(clock=clock(-FAR)).files_loaded == 1
    with open_ledger(simple.ledger) as ledger:
        assert expire(Settings(), ledger).files == 1
    for days in (0, -FAR):
        assert simple.load(clock=clock(days)).count(Status.SKIPPED_UNCERTAIN) == 1
    assert ids(simple) == Counter(expected)


def test_records_go_as_loads_go_by(place: Place) -> None:
    """A load drops records whose time is over, with what their loads left, without a cron job."""
    write_files(place.stage, 1)
    first = place.load().load_ids[0]
    (place.stage / "f00000.csv").unlink()
    write_file(place.stage, 1)
    place.load(clock=clock(60))
    place.load(clock=clock(FAR))
    with open_ledger(place.ledger) as ledger, ledger.read() as connection:
        names = [place.rpartition("/")[2] for place in connection.scalars(select(files.c.location))]
    assert names == ["f00001.csv"]
    left = {path for path in place.files() if "_calque/loads/" in path}
    assert left
    assert not any(first in path for path in left)
