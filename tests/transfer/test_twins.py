"""Tasks that run twice at once, as speculation makes them: only what one of them tells counts.

Spark is left out: each task is run by two threads, and the result of one of them is taken. What
Spark itself does with twins is tried on a cluster, in soak.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from calque.operator import Operator
from calque.transfer import api
from calque.transfer.jobs.open_job import configured_ledger, open_job
from calque.transfer.model import KeyRange, Row, new_job_id
from calque.transfer.plan.pairing import pair_up
from calque.transfer.plan.places import open_target
from calque.transfer.plan.plan import Trees
from calque.transfer.report.report import Report
from calque.transfer.request.tree_request import TreeRequest
from calque.transfer.run import lister
from calque.transfer.run.cluster import SpanResult, SpanTask, run_span
from tests.servers.seaweedfs import S3Server
from tests.transfer.conftest import MakeTree, files_of, objects_of, s3_options

MIB = 1024 * 1024


class Twins:
    """A cluster that begins every task twice; the first to end counts, or the last."""

    def __init__(self) -> None:
        self._request = TreeRequest(kind="cp", sources=["x"], target="x")
        self._numbers = count()
        self.tasks: list[SpanTask] = []
        self.before_tasks: Callable[[], None] = lambda: None

    def prepare(self, request: TreeRequest, trees: Sequence[Trees]) -> None:
        self._request = request
        self._named = [each.named for each in trees]

    def run(
        self,
        tree: int,
        spans: Sequence[KeyRange],
        can_be_cut: bool,
        left_out: Collection[str] = (),
        moved_before: bool = False,
    ) -> tuple[list[SpanResult], list[KeyRange]]:
        told = self._request.to_json() | {
            "source_options": self._request.source_options,  # as executors find them for themselves
            "target_options": self._request.target_options,
        }
        self.before_tasks()
        results = []
        for span in spans:
            out = tuple(path for path in left_out if span.holds(path))
            named = self._named[tree]
            task = SpanTask(
                told, tree, span, 2, 2, 4, named=named, left_out=out, moved_before=moved_before
            )
            self.tasks.append(task)
            with ThreadPoolExecutor(2) as pool:
                both = [pool.submit(run_span, task, f"s{next(self._numbers)}") for _ in range(2)]
            results.append(both[len(results) % 2].result())
        return results, []

    def cancel(self) -> None:
        """Nobody stops these."""


@pytest.fixture
def twins(monkeypatch: pytest.MonkeyPatch) -> Twins:
    made = Twins()
    monkeypatch.setattr(api, "_cluster_of", lambda options, trees: made)
    monkeypatch.setattr(lister, "_PAGE", 20)
    return made


@pytest.mark.parametrize("verb", [api.copy_tree, api.sync_tree, api.move_tree])
def test_files(twins: Twins, make_tree: MakeTree, tmp_path: Path, verb: object) -> None:
    """Each object is there once, with one row; a source that was moved is gone, its folder too."""
    files = {f"d{number % 5}/{number:03}": b"x" * number for number in range(150)}
    source = make_tree("source", files)
    rows: list[Row] = []
    report = verb(f"{source}/", tmp_path / "to", on_event=rows.append)  # type: ignore[operator]
    assert report.ok, report.problems
    assert len(twins.tasks) > 2
    assert files_of(tmp_path / "to") == files
    assert sorted(row.path for row in rows) == sorted(files)
    assert report.totals.done == len(files)
    if verb is api.move_tree:
        assert list(source.iterdir()) == []
    else:
        assert files_of(source) == files


def test_a_stop_at_an_error(twins: Twins, make_tree: MakeTree, tmp_path: Path) -> None:
    """No further task is begun; those under way end, and nothing has two rows, then or later."""
    files = {f"d{number % 5}/{number:03}": b"x" for number in range(120)}
    source = make_tree("source", files)
    make_tree("to/d0/000", {"in": b"the way"})
    rows: list[Row] = []
    report = api.copy_tree(f"{source}/", tmp_path / "to", on_error="stop", on_event=rows.append)
    assert [row.path for row in report.problems] == ["d0/000"]
    assert (bool(report.error), report.stopped) == (True, False)
    assert len(rows) == 39, "two pages, all of the task that met it; one pair is in the way"
    assert api.copy_tree(f"{source}/", tmp_path / "to", on_event=rows.append).resumed
    assert sorted(row.path for row in rows) == sorted(files)


def test_a_move_between_servers(twins: Twins, s3: Operator, tree_bucket: S3Server) -> None:
    """Several sources, which rows tell apart: all is moved, each told once."""
    for number in range(30):
        s3.write(f"one/{number:02}", b"1")
        s3.write(f"two/{number:02}", b"2")
    options, rows = s3_options(tree_bucket), list[Row]()
    report = api.move_tree(
        [s3.location("one"), s3.location("two")],
        s3.location("to/"),
        source_options=options,
        target_options=options,
        on_event=rows.append,
    )
    assert report.ok, report.problems
    wanted = {f"{name}/{number:02}" for name in ("one", "two") for number in range(30)}
    assert sorted(row.path for row in rows) == sorted(wanted)
    assert objects_of(s3).keys() == {f"to/{path}" for path in wanted}


@pytest.mark.parametrize("compare", ["default", "always"])
def test_a_large_copy_that_the_driver_resumes_is_made_once(
    twins: Twins, make_tree: MakeTree, tmp_path: Path, compare: str
) -> None:
    """It is noted by itself, and a range that is left holds it too: no task is asked for it."""
    source = make_tree("source", {"a": b"small", "big": bytes(9 * MIB), "z": b"last"})
    options = {"compare": compare}
    request = TreeRequest(
        kind="cp",
        sources=[f"{source}/"],
        target=str(tmp_path / "to"),
        options=api.options_from("cp", options),  # type: ignore[arg-type]
    )
    trees = pair_up(request, open_target(request.target, {}, ()), ())
    begun = open_job(request, trees, Report(new_job_id(), "cp", (), ""), configured_ledger)
    assert begun.journal is not None
    begun.journal.keep_copy(0, "big")
    begun.journal.let_go()
    begun.close()
    rows: list[Row] = []
    report = api.copy_tree(
        f"{source}/",
        tmp_path / "to",
        on_event=rows.append,
        **options,  # type: ignore[arg-type]
    )
    assert report.resumed
    assert sorted(row.path for row in rows) == ["a", "big", "z"]
    assert [row.outcome for row in rows if row.path == "big"] == ["copied"]
    assert all("big" in task.left_out for task in twins.tasks if task.span.holds("big"))
    assert files_of(tmp_path / "to") == files_of(source)


@pytest.mark.parametrize("stays", [True, False])
def test_a_move_whose_delete_arrives_late(
    twins: Twins, make_tree: MakeTree, tmp_path: Path, stays: bool
) -> None:
    """The driver that resumes has looked, and found the source; it is gone when a task lists it:
    it has its row all the same, one that tells whether it is at the target."""
    source = make_tree("source", {"a": b"1", "d/late": b"2", "z": b"3"})
    target = make_tree("to", {"d/late": b"2"} if stays else {})
    request = TreeRequest(kind="mv", sources=[f"{source}/"], target=str(target))
    trees = pair_up(request, open_target(request.target, {}, ()), ())
    begun = open_job(request, trees, Report(new_job_id(), "mv", (), ""), configured_ledger)
    assert begun.journal is not None
    begun.journal.announce(0, [Row("d/late", "copied", "new", size=1)], KeyRange())
    begun.journal.let_go()
    begun.close()
    twins.before_tasks = lambda: (source / "d/late").unlink(missing_ok=True)
    rows: list[Row] = []
    report = api.move_tree(f"{source}/", str(target), on_event=rows.append)
    assert report.resumed
    outcomes = {"a": "copied", "d/late": "copied" if stays else "changed", "z": "copied"}
    assert sorted((row.path, row.outcome) for row in rows) == sorted(outcomes.items())
    assert files_of(target).keys() == ({"a", "d/late", "z"} if stays else {"a", "z"})
    assert report.totals.of("copied").objects == (3 if stays else 2)
