"""A label makes a statement idempotent, whoever runs it and however it ends."""

from __future__ import annotations

from collections import Counter

import pytest

from calque.errors import LoadAborted
from tests.loader.loader import Place, run
from tests.loader.meddling import Meddling
from tests.loader.world import ids, write_files


def test_label_makes_a_statement_idempotent(place: Place) -> None:
    """A label that was loaded gives its report again and loads nothing, even with FORCE."""
    expected = write_files(place.stage, 2)
    first = place.load(label="nightly-1", force=True)
    write_files(place.stage, 1, first=9)
    again = place.load(label="nightly-1", force=True)
    assert first.load_ids == again.load_ids == ["nightly-1"]
    assert again.replayed
    assert again.rows_loaded == first.rows_loaded
    assert ids(place) == Counter(expected)


def test_label_of_an_aborted_load_can_be_used_again(simple: Place) -> None:
    """A label whose load was given up is free."""
    write_files(simple.stage, 1)
    simple.load()
    (simple.stage / "bad.csv").write_text("id,name\nx,y\n")
    with pytest.raises(LoadAborted):
        simple.load(label="once")
    (simple.stage / "bad.csv").write_text("id,name\n77,y\n")
    told = simple.load(label="once")
    assert told.load_ids == ["once~2"]
    assert simple.load(label="once").replayed


def test_a_label_that_another_ends_meanwhile(simple: Place) -> None:
    """Of two that run a labelled statement at once one loads; the other gives its report again."""
    expected = write_files(simple.stage, 2)

    def overtake() -> None:
        simple.load(label="once", force=True)

    late = simple.load(label="once", force=True, engine=Meddling(before_inference=overtake))
    assert late.replayed
    assert ids(simple) == Counter(expected)
    assert simple.load(label="once", force=True).replayed


def test_labelled_statement_killed_between_batches(simple: Place) -> None:
    """A labelled statement of several loads goes on where it was killed, FORCE or not."""
    expected = write_files(simple.stage, 4)
    code = run(simple, "victim", "claim.before@2:kill", label="big", batch_files=2, force=True)
    assert code < 0
    told = simple.load(label="big", batch_files=2, force=True)
    assert told.files_loaded == 2
    assert ids(simple) == Counter(expected)
    assert simple.load(label="big", batch_files=2, force=True).replayed
