"""One run of a request: the order of its steps."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select

import calque
from calque.errors import LoadAborted, StatementInvalid
from calque.ledger import open_ledger
from calque.ledger.schema import loads
from tests.loader.loader import Place
from tests.loader.world import ids, write_files


def test_the_plan_comes_before_the_claim(simple: Place) -> None:
    """What no plan can be made of claims nothing, and leaves no load behind."""
    write_files(simple.stage, 1)
    simple.load()
    write_files(simple.stage, 1, first=1)
    with pytest.raises(StatementInvalid, match="no column elsewhere"):
        simple.load(columns=("id", "elsewhere"))
    with open_ledger(simple.ledger) as ledger, ledger.read() as connection:
        assert connection.execute(select(loads.c.state)).scalars().all() == ["COMMITTED"]


def test_a_path_and_a_list_of_paths(delta: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """load() takes paths where it takes text, and a list of files where it takes a stage."""
    monkeypatch.setenv("XDG_STATE_HOME", str(delta.folder / "state"))
    expected = write_files(delta.stage, 3)
    table = Path(delta.table)
    some = [delta.stage / "f00000.csv", str(delta.stage / "f00002.csv")]
    assert calque.load(some, table, spark="local").files_loaded == 2
    assert calque.load(delta.stage, table, spark="local").files_loaded == 1
    assert sorted(ids(delta).elements()) == sorted(expected)
    with pytest.raises(LoadAborted, match="no such file"):
        calque.load([*some, delta.stage / "gone.csv"], table, spark="local")
