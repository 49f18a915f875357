"""Comparing a stage with the ledger."""

from __future__ import annotations

import os
import time

from sqlalchemy import select

from calque.config import Settings
from calque.ledger import open_ledger
from calque.ledger.identity import DAY
from calque.ledger.schema import files
from calque.ledger.tables import find_table
from calque.loader.after.upkeep import RecordUpkeep
from calque.loader.commit.tables import open_table
from calque.loader.commit.target import Target
from calque.loader.model.outcome import Status
from calque.loader.plan.compare import Comparison
from calque.loader.plan.stage import Stage
from calque.loader.request.request import LoadRequest
from tests.loader.loader import Place
from tests.loader.world import write_files


def later(days: float) -> int:
    return time.time_ns() // 1000 + int(days * DAY)


def test_comparing_writes_nothing(simple: Place) -> None:
    """Records that end soon, or tell another time than the file, are named; the upkeep writes."""
    write_files(simple.stage, 2)
    simple.load()
    os.utime(simple.stage / "f00000.csv", (1, 1))
    lake = open_table(simple.table, Settings())
    request = LoadRequest(stage=simple.source, into=simple.table)
    with open_ledger(simple.ledger, clock=lambda: later(60)) as ledger:
        table = find_table(ledger, lake.key(lake.open()))
        assert table is not None

        def records() -> list[object]:
            with ledger.read() as connection:
                return list(connection.execute(select(files).order_by(files.c.location)).all())

        before = records()
        read = Target(lake, ledger, print).read_data_file
        found = list(Comparison(Stage(simple.source, Settings()), request, ledger, table, read))
        assert records() == before
        assert [one.status for one in found] == [Status.SKIPPED_LOADED] * 2
        assert [one.renewal_due for one in found] == [True, True]
        assert found[0].record_outdated
        upkeep = RecordUpkeep(ledger, table)
        for one in found:
            upkeep.note(one)
        assert records() == before
        upkeep.write()
        assert all(old != new for old, new in zip(before, records(), strict=True))
