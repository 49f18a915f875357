"""What killed writers leave under a table is gone when their load is over."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from uuid import uuid4

import pytest

from calque.errors import DataError, LoadAborted
from calque.loader.model.outcome import TaskResult
from calque.loader.model.plan import OnAdvance, WritePlan
from calque.loader.run.writing.table_root import TableRoot
from tests.loader.bucket import BucketPlace
from tests.loader.loader import Place
from tests.loader.meddling import Meddling
from tests.loader.world import assert_settled, ids, write_files
from tests.servers.seaweedfs import S3Server


class Dying(Meddling):
    """The real engine; before it, writers of the same load are killed in the middle of a file."""

    def __init__(self, folders: tuple[str, ...] = ("",), *, fails: bool = False) -> None:
        super().__init__()
        self.folders = folders
        self.fails = fails
        self.left = 0

    def run(self, plan: WritePlan, advance: OnAdvance | None = None) -> Iterator[TaskResult]:
        for number, folder in enumerate(self.folders):
            name = f"{plan.data_prefix}{folder}{plan.data_file_name(number, 'dead', 1)}"
            told = [plan.root, name, json.dumps(dict(plan.root_options))]
            died = subprocess.run([sys.executable, "-m", "tests.loader.killed_writer", *told])
            assert died.returncode == -signal.SIGKILL
        self.left = len(leftovers(plan.root, plan.root_options))
        if self.fails:
            raise DataError("no more")
        yield from super().run(plan, advance)


def leftovers(root: str, options: Mapping[str, object]) -> list[str]:
    """Unfinished files anywhere under the table."""
    place = TableRoot.at(root, options)
    return [one.location for one in place.operator.leftovers(place.base)]


@pytest.fixture(params=["fs", "s3"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A Delta table in a folder, then in a bucket of its own."""
    ledger = str(tmp_path / "ledger.db")
    if request.param == "fs":
        return Place(tmp_path, "delta", ledger)
    server: S3Server = request.getfixturevalue("seaweed")
    bucket = f"orphans-{uuid4().hex[:8]}"
    made = BucketPlace(tmp_path, "delta", ledger, server.endpoint, bucket)
    made.client.create_bucket(Bucket=bucket)
    return made


def stage(lake: Place) -> list[int]:
    if isinstance(lake, BucketPlace):
        lake.put("a.csv", "id,name\n1,x\n2,y\n")
        return [1, 2]
    return write_files(lake.stage, 1)


def test_unfinished_files_of_killed_writers(lake: Place) -> None:
    """A writer killed in the middle of a data file leaves nothing once the load is committed."""
    expected = stage(lake)
    engine = Dying()
    statement = lake.statement(engine=engine)
    statement.run()
    assert engine.left == 1
    assert leftovers(statement.lake.root, statement.lake.options) == []
    assert ids(lake) == Counter(expected)


def test_unfinished_files_of_a_load_given_up(lake: Place) -> None:
    """Nor does it once the load is given up, in whatever partition it wrote."""
    stage(lake)
    lake.load(partition_by=("name",))
    stage(lake)
    engine = Dying(("", "name=x/"), fails=True)
    statement = lake.statement(engine=engine, force=True)
    with pytest.raises(LoadAborted):
        statement.run()
    assert engine.left == 2
    assert leftovers(statement.lake.root, statement.lake.options) == []


def test_labels_that_begin_alike(simple: Place) -> None:
    """What belongs to a load is told by its whole id: a label may be the beginning of another's."""
    labels = ["day-2", "day-00002", "day-kept", "day-cut", "day.2", "day"]
    expected = []
    for number, label in enumerate(labels):
        expected += write_files(simple.stage, 1, first=number)
        assert simple.load(label=label).files_loaded == 1
    assert_settled(simple, expected)


def test_a_label_for_two_tables(simple: Place) -> None:
    """A label is one of a table: the same may be given to a load of another one."""
    expected = write_files(simple.stage, 2)
    other = Place(simple.folder / "other", simple.kind, simple.ledger)
    (simple.folder / "other").mkdir()
    for _ in range(2):
        told = [simple.load(label="day"), other.load(label="day", stage=simple.source)]
    assert [one.replayed for one in told] == [True, True]
    assert ids(simple) == ids(other) == Counter(expected)
