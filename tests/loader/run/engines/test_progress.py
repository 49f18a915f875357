"""Progress: files, rows and bytes advance while a plan runs, and end where they must."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from calque.loader.model.load_progress import LoadProgress
from calque.loader.model.plan import Advance, Engine, Transformation
from calque.loader.run.engines.local import LocalEngine
from calque.loader.run.engines.spark import SparkEngine
from calque.spark.tasks import Watch, job_group, run_tasks, run_watched, tasks_done
from tests.loader.loader import Place
from tests.loader.run.conftest import World
from tests.loader.world import write_files

FILES = 6
BODY = b"1,x\n2,y\n"
PATIENCE = 60.0


def plan_of(world: World, **options: Any) -> Any:
    return world.plan([world.put(f"{n}.csv", BODY) for n in range(FILES)], **options)


def rising(told: list[Advance]) -> bool:
    return all(
        left.files <= right.files and left.rows <= right.rows and left.bytes <= right.bytes
        for left, right in pairwise(told)
    )


WHOLE = Advance(FILES, 2 * FILES, len(BODY) * FILES)


def test_local_tells_every_file(world: World) -> None:
    """In one process each file is told as it ends."""
    told: list[Advance] = []
    list(LocalEngine(2).run(plan_of(world), told.append))
    assert [one.files for one in told] == [1, 2, 3, 4, 5, 6]
    assert rising(told)
    assert told[-1] == WHOLE


@pytest.mark.parametrize("engine", ["processes", "spark"])
def test_tasks_are_told(world: World, engine: str, request: pytest.FixtureRequest) -> None:
    """Tasks in other processes are told as they end; at the end nothing is missing."""
    told: list[Advance] = []
    chosen: Engine = (
        LocalEngine(2, task_bytes=len(BODY))
        if engine == "processes"
        else SparkEngine(request.getfixturevalue("spark"), task_bytes=len(BODY))
    )
    list(chosen.run(plan_of(world), told.append))
    assert rising(told)
    assert told[-1] == WHOLE


def test_pieces_of_one_file_are_one_file(world: World, spark: Any) -> None:
    """A file that is cut counts once, with all its rows."""
    body = b"".join(b"%07d,%s\n" % (n, b"x" * 92) for n in range(100_000))
    told: list[Advance] = []
    plan = world.plan([world.put("big.csv", body)])
    list(SparkEngine(spark, task_bytes=2 << 20).run(plan, told.append))
    assert (told[-1].files, told[-1].rows) == (1, 100_000)
    assert told[-1].bytes >= len(body)  # a piece reads on to the end of its last record


def test_a_select_tells_tasks_and_then_rows(world: World, spark: Any) -> None:
    """Of a transformation rows are known at the end; nothing goes down on the way."""
    told: list[Advance] = []
    chosen = Transformation(("CAST(`$1` AS BIGINT)", "`$2`"), ("a", "b"))
    list(SparkEngine(spark).run(plan_of(world, transformation=chosen), told.append))
    assert rising(told)
    assert told[-1] == WHOLE


@dataclass(frozen=True)
class Waits:
    """Work whose second item ends only when the driver has heard of the first."""

    heard: Path

    def __call__(self, item: int, attempt: str) -> int:
        until = time.monotonic() + PATIENCE
        while item == 2 and not self.heard.exists():
            if time.monotonic() > until:
                raise TimeoutError("the driver has not heard of the first task")
            time.sleep(0.01)
        return item


def one(item: int) -> tuple[int, int]:
    return (1, item)


def test_counts_arrive_while_the_job_runs(tmp_path: Path, spark: Any) -> None:
    """The driver hears of a finished task before the others have ended."""
    heard = tmp_path / "heard"
    told: list[tuple[int, ...]] = []

    def tell(counts: tuple[int, ...]) -> None:
        told.append(counts)
        if counts[0] == 1:
            heard.touch()

    watch = Watch(one, tell, (0, 0))
    assert run_tasks(spark.sparkContext, [1, 2], Waits(heard), about="waiting", watch=watch) == [
        1,
        2,
    ]
    assert told[-1] == (2, 3)


def test_tasks_done_while_the_job_runs(tmp_path: Path, spark: Any) -> None:
    """Spark's own count of ended tasks, which is all there is of a transformation."""
    heard = tmp_path / "heard"
    work = Waits(heard)
    told: list[tuple[int, int]] = []

    def look() -> None:
        told.append(tasks_done(spark.sparkContext, "calque-test"))
        if told[-1] == (1, 2):
            heard.touch()

    def job() -> list[int]:
        found: list[int] = (
            spark.sparkContext.parallelize([1, 2], 2).map(WithAttempt(work)).collect()
        )
        return found

    with job_group(spark.sparkContext, "calque-test"):
        assert run_watched(job, look) == [1, 2]
    assert (1, 2) in told


@dataclass(frozen=True)
class WithAttempt:
    work: Waits

    def __call__(self, item: int) -> int:
        return self.work(item, "a")


def test_a_failing_job_is_still_an_error(spark: Any) -> None:
    """Watching a job does not swallow what it raises."""
    watch = Watch(one, lambda counts: None, (0, 0))
    with pytest.raises(Exception, match="ZeroDivisionError"):
        run_tasks(spark.sparkContext, [0], lambda item, _: 1 // item, about="failing", watch=watch)


def test_a_statement_tells_its_progress(tmp_path: Path) -> None:
    """``progress=`` hears of files, rows and bytes, with their totals, up to the end."""
    place = Place(tmp_path, "delta", str(tmp_path / "ledger.db"))
    write_files(place.stage, 3)
    size = sum(path.stat().st_size for path in place.stage.iterdir())
    told: list[LoadProgress] = []
    statement = place.statement()
    statement._progress = told.append
    statement.run()
    loading = [one for one in told if one.phase == "loading"]
    assert [one.files for one in loading] == [1, 2, 3]
    assert loading[-1] == LoadProgress(3, 3, 12, size, size)


def test_properties_are_left_as_they_were(spark: Any) -> None:
    """A thread without a group has none afterwards: one named "" would hide its later jobs."""
    name, context = "spark.jobGroup.id", spark.sparkContext
    before = context.getLocalProperty(name)
    try:
        for found in (None, "of the user"):
            context.setLocalProperty(name, found)
            with job_group(context, "calque-test"):
                assert context.getLocalProperty(name) == "calque-test"
            assert context.getLocalProperty(name) == found
    finally:
        context.setLocalProperty(name, before)
