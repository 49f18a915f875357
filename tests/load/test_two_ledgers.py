"""Two ledgers on one table: each is a cache of what the table tells, and no file counts twice."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select

from calque import faults
from calque.config import Settings
from calque.errors import AlreadyExists
from calque.ledger import open_ledger
from calque.ledger.schema import loads
from calque.load.truncate import truncate_table
from calque.testing.postgres import PostgresServer
from tests.load.loader import Place
from tests.load.meddling import Meddling
from tests.load.test_others import restore
from tests.load.world import assert_settled, ids, write_file, write_files


@pytest.fixture
def other(place: Place, request: pytest.FixtureRequest) -> Iterator[Place]:
    """The same stage and table as ``place``, with a ledger of its own of the same kind."""
    if not place.ledger.startswith("postgres"):
        yield replace(place, ledger=str(place.folder / "other.db"))
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    url = server.database()
    yield replace(place, ledger=url)
    server.drop(url)


def counts(place: Place, **options: object) -> dict[str, int]:
    return dict(place.load(**options).files.counts)


def test_each_takes_in_what_the_other_loads(place: Place, other: Place) -> None:
    """A loads, B loads, A loads more, B loads again, and so on: every file is in once."""
    expected: list[int] = []
    for number in range(4):
        first, second = (place, other) if number % 2 else (other, place)
        expected += write_file(place.stage, number)
        assert counts(first) == {"LOADED": 1, **({"SKIPPED_LOADED": number} if number else {})}
        assert counts(second) == {"SKIPPED_LOADED": number + 1}
    for one in (place, other):
        assert_settled(one, expected)


def test_one_file_by_both_at_once(place: Place, other: Place) -> None:
    """The same new files by two ledgers at the same moment: one commits them, the other the rest."""
    expected = write_files(place.stage, 3)
    place.load(files=("f00000.csv",))

    def quicker() -> None:
        assert counts(other, files=("f00001.csv",)) == {"LOADED": 1}

    told = place.load(engine=Meddling(after=_once(quicker)))
    assert dict(told.files.counts) == {"LOADED": 1, "SKIPPED_LOADED": 2}
    assert {row.name for row in told.files if row.status == "LOADED"} == {"f00002.csv"}
    assert any("loaded before" in (row.message or "") for row in told.files)
    assert counts(other) == {"SKIPPED_LOADED": 3}
    for one in (place, other):
        assert_settled(one, expected)


def _once(act):  # type: ignore[no-untyped-def]
    done: list[bool] = []

    def run() -> None:
        if not done:
            done.append(True)
            act()

    return run
