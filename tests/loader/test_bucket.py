"""Tables on an object store: options reach every part, and the promise is the same as on a disk."""

from __future__ import annotations

import pickle
import signal
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import pytest

from calque.config import Settings, StageSettings, TableSettings
from calque.errors import ConditionNotMatch, ConfigInvalid
from calque.ledger import open_ledger
from calque.loader.commit.tables import Change, Mark, open_table
from calque.loader.commit.truncate import truncate_table
from calque.loader.model.outcome import TaskResult
from calque.loader.model.plan import OnAdvance, WritePlan
from calque.loader.plan.stage import Stage
from calque.loader.run.engines.local import LocalEngine
from tests.loader.bucket import BucketPlace
from tests.loader.conftest import KINDS
from tests.loader.loader import ended, run, start
from tests.loader.world import ROWS, assert_settled, files_on_disk, ids, rows, write_files
from tests.servers.seaweedfs import SECRET_KEY, S3Server

STEPS = ("write.after", "prepare.sidecar", "commit.before", "commit.after", "finalise.before")
"""Where a crash leaves something on the object store."""


@pytest.fixture(params=KINDS)
def place(
    request: pytest.FixtureRequest,
    seaweed: S3Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> BucketPlace:
    """A bucket of its own, and an environment that knows nothing of it."""
    for name in seaweed.environment:
        monkeypatch.delenv(name, raising=False)
    bucket = f"b{uuid.uuid4().hex}"
    made = BucketPlace(
        tmp_path, request.param, str(tmp_path / "ledger.db"), seaweed.endpoint, bucket
    )
    made.client.create_bucket(Bucket=bucket)
    return made


def staged(place: BucketPlace, count: int) -> list[int]:
    """CSV files in the stage; every id."""
    expected = []
    for number in range(count):
        mine = [number * 100 + row for row in range(ROWS)]
        place.put(f"f{number}.csv", "id,name\n" + "".join(f"{one},n{one}\n" for one in mine))
        expected += mine
    return expected


def test_options_alone_reach_every_part(place: BucketPlace) -> None:
    """Infer, make, load, skip, replace, grow, purge, truncate: with no AWS_* variable set."""
    expected = staged(place, 2)
    assert place.load().rows_loaded == len(expected)
    assert place.load().files.counts == {"SKIPPED_LOADED": 2}
    place.put("f1.csv", "id,name,more\n7,a,1\n")
    assert place.load(on_changed="replace", evolve=True).rows_loaded == 1
    assert ids(place) == Counter([*expected[:ROWS], 7])
    assert rows(place).column_names == ["id", "name", "more"]
    place.put("f2.csv", "id,name,more\n8,b,2\n")
    assert place.load(purge=True).purged == 1
    assert place.keys("in/") == ["in/f0.csv", "in/f1.csv"]
    with open_ledger(place.ledger) as ledger:
        truncate_table(place.table, place.settings, ledger)
    assert ids(place) == Counter()
    assert place.load().files_loaded == 2


class Watched(LocalEngine):
    """The local engine with worker processes; keeps the plans as they travel to them."""

    def __init__(self) -> None:
        super().__init__(2, task_bytes=20)
        self.plans: list[bytes] = []

    def run(self, plan: WritePlan, advance: OnAdvance | None = None) -> Iterator[TaskResult]:
        self.plans.append(pickle.dumps(plan))
        return super().run(plan, advance)


def test_options_travel_to_workers(place: BucketPlace) -> None:
    """Worker processes open stage and table by the options of the plan, which hold no secret."""
    expected = staged(place, 3)
    engine = Watched()
    assert place.load(engine=engine).rows_loaded == len(expected)
    assert len(files_on_disk(place)) > 1
    assert ids(place) == Counter(expected)
    (plan,) = engine.plans
    assert place.endpoint.encode() in plan
    assert SECRET_KEY.encode() not in plan


def test_a_lost_ledger_is_rebuilt_from_the_bucket(place: BucketPlace) -> None:
    """The sidecars lie beside the data, so that another ledger learns what was loaded."""
    expected = staged(place, 2)
    place.load()
    Path(place.ledger).unlink()
    assert place.load().files.counts == {"SKIPPED_LOADED": 2}
    assert ids(place) == Counter(expected)


def test_of_two_commits_on_one_version_one_is_refused(place: BucketPlace) -> None:
    """The server itself refuses the second of two commits that race for the same version."""
    staged(place, 1)
    place.load()
    lake = open_table(place.table, place.settings)
    barrier = threading.Barrier(2)

    def commit(name: str) -> bool:
        snapshot = open_table(place.table, place.settings).open()
        barrier.wait(30)
        try:
            snapshot.commit(Change(load_id=name, mark=Mark.ABORTED))
        except ConditionNotMatch:
            return False
        return True

    begun = lake.open().version
    with ThreadPoolExecutor(2) as pool:
        for number in range(8):
            names = [f"r{number}-{one}" for one in range(2)]
            won = list(pool.map(commit, names))
            assert won.count(True) == 1, names
            fresh = lake.open()
            for name, is_in in zip(names, won, strict=True):
                assert (fresh.marker(name, begun) is not None) == is_in
    assert lake.open().version == begun + 8


@pytest.mark.parametrize(
    ("place", "step"),
    [  # Each step with one kind of table; on a disk the crash matrix tries each with each.
        pytest.param(kind, step, marks=() if (turn + number) % 2 else pytest.mark.soak)
        for (turn, kind), (number, step) in product(enumerate(KINDS), enumerate(STEPS))
    ],
    indirect=["place"],
)
def test_killed_then_run_again(place: BucketPlace, step: str) -> None:
    """A loader killed with its table on an object store leaves nothing that the next leaves so."""
    expected = staged(place, 3)
    assert run(place, "victim", f"{step}:kill") == -signal.SIGKILL
    assert run(place, "again") == 0
    assert_settled(place, expected)


def test_killed_beside_another(place: BucketPlace) -> None:
    """Two loaders on one bucket, one killed at its commit: every file once."""
    expected = staged(place, 3)
    victim = start(place, "victim", "commit.before:kill", batch_files=1)
    other = start(place, "other", batch_files=1)
    victim.join(60)
    assert ended(place, "other", other) == 0
    assert run(place, "again") == 0
    assert_settled(place, expected)
    assert files_on_disk(place)


@pytest.mark.parametrize("place", ["delta"], indirect=True)
def test_purge_of_another_stage(place: BucketPlace) -> None:
    """What a killed load of a folder was to purge is purged by a load of the bucket."""
    local = place.folder / "local"
    write_files(local, 1, first=7)
    options = {"stage": f"{local}/", "purge": True}
    assert run(place, "victim", "purge.before:kill", **options) == -signal.SIGKILL
    staged(place, 1)
    assert place.load(purge=True).purged == 2
    assert list(local.iterdir()) == []
    assert place.keys("in/") == []


@pytest.mark.parametrize("place", ["delta"], indirect=True)
def test_purge_leaves_what_came_back(place: BucketPlace) -> None:
    """Bytes that another load has followed are new again: a rebuilt queue does not take them."""
    for body in ("id,name\n1,a\n", "id,name\n2,b\n"):
        place.put("f.csv", body)
        assert place.load(purge=True).purged == 1
    place.put("f.csv", "id,name\n1,a\n")
    Path(place.ledger).unlink()
    told = place.load()
    assert (told.purged, told.files_loaded) == (0, 1)
    assert ids(place) == Counter([1, 2, 1])
    assert place.keys("in/") == ["in/f.csv"]


@pytest.mark.parametrize("place", ["delta"], indirect=True)
def test_secrets_are_refused_in_options(place: BucketPlace) -> None:
    """Options travel to executors, so a key among them is an error that says what to do."""
    options = {"access_key_id": "me", "secret_access_key": "s3cr3t"}
    settings = Settings(
        stages={"in": StageSettings("s3://b/in/", options)},
        tables={"t": TableSettings(location="s3://b/t", options=options)},
    )
    with pytest.raises(ConfigInvalid, match="secret_access_key is a secret") as stage:
        Stage("@in", settings)
    with pytest.raises(ConfigInvalid, match="secret_access_key is a secret") as table:
        open_table("t", settings)
    assert "s3cr3t" not in f"{stage.value}{table.value}"
