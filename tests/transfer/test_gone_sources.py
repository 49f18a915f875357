"""Runs that were killed when a source was gone already: moved, or removed once it was copied."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from calque import copy_tree
from calque.errors import NotFound
from calque.operator import Operator
from calque.store.open_project import open_project
from calque.transfer.jobs.open_job import configured_ledger, open_job
from calque.transfer.model import EVERYTHING, new_job_id
from calque.transfer.plan.pairing import pair_up
from calque.transfer.plan.places import open_target
from calque.transfer.report.report import Report
from calque.transfer.report.report_file import read_report
from calque.transfer.request.tree_request import TreeRequest
from tests.servers.seaweedfs import S3Server
from tests.transfer.conftest import objects_of, s3_options
from tests.transfer.killed_run import Child

FIRST = {f"a/{number:02}": b"first" for number in range(5)}
SECOND = {f"b/deep/{number:02}": b"second" for number in range(20)}
WANTED = {**FIRST, "x": b"one object", **SECOND}


@pytest.fixture
def several(s3: Operator) -> Operator:
    """Two folders and an object between them."""
    for path, content in WANTED.items():
        s3.write(f"from/{path}", content)
    return s3


def child_of(
    several: Operator, server: S3Server, state: Path, sources: list[str], **more: object
) -> Child:
    return Child(
        state,
        [several.location(f"from/{each}") for each in sources],
        several.location("to/"),
        service=s3_options(server),
        concurrent=1,
        **more,  # type: ignore[arg-type]
    )


def written_to(several: Operator) -> dict[str, bytes]:
    found = objects_of(several)
    return {path[3:]: content for path, content in found.items() if path.startswith("to/")}


@pytest.mark.parametrize(
    ("fault", "told"), [("tree.told@6", True), ("tree.told@12", False), ("tree.copied@26", True)]
)
def test_several_moved(
    several: Operator, tree_bucket: S3Server, tmp_path: Path, fault: str, told: bool
) -> None:
    """The first two are gone, whole, by their names without a slash: the same command goes on, and
    everything is at the target; with a report each object has one row."""
    report = tmp_path / "rows.jsonl" if told else None
    child = child_of(
        several, tree_bucket, tmp_path / "state", ["a", "x", "b"], kind="mv", report=report
    )
    assert child.run(f"{fault}:kill").returncode == -signal.SIGKILL
    assert not [path for path in objects_of(several) if path.startswith("from/a/")]
    ended = child.finish()
    assert (ended["exit_code"], ended["resumed"]) == (0, True)
    assert written_to(several) == WANTED
    assert not [path for path in objects_of(several) if path.startswith("from/")]
    if report is not None:
        rows = list(read_report(report))
        assert sorted(row.path for row in rows) == sorted(WANTED)
        assert {row.outcome for row in rows} <= {"copied", "up to date"}


@pytest.mark.parametrize("source", ["a/", "a", "x"])
def test_one_moved_to_its_end(
    several: Operator, tree_bucket: S3Server, tmp_path: Path, source: str
) -> None:
    """Its process died before it could note that the last object was gone: that is no error, and
    once it is noted a further run has no source."""
    child = child_of(several, tree_bucket, tmp_path / "state", [source], kind="mv")
    last = len(FIRST) if source != "x" else 1
    assert child.run(f"tree.told@{last}:kill").returncode == -signal.SIGKILL
    assert child.finish()["exit_code"] == 0
    again = child.run()
    assert again.returncode == 1
    assert "does not exist" in again.stderr


def leave_job(several: Operator, server: S3Server, sources: list[str], left: list[int]) -> None:
    """What a killed run leaves: a job, of which these of its trees are left."""
    options = s3_options(server)
    request = TreeRequest(
        kind="cp", sources=sources, target=several.location("to/"),
        source_options=options, target_options=options,
    )  # fmt: skip
    trees = pair_up(request, open_target(request.target, options, ()), ())
    report = Report(new_job_id(), "cp", tuple(sources), "")
    begun = open_job(request, trees, report, configured_ledger)
    assert begun.journal is not None
    begun.journal.note(lambda: [(number, EVERYTHING) for number in left], lambda: None)
    begun.journal.let_go()
    begun.close()


def test_one_copied_and_removed(several: Operator, tree_bucket: S3Server) -> None:
    """Of several that are copied one that is done may go; one that is not may not."""
    options = s3_options(tree_bucket)
    places = {"source_options": options, "target_options": options}
    sources = [several.location("from/a"), several.location("from/b")]
    leave_job(several, tree_bucket, sources, left=[1])
    for path in FIRST:
        several.delete(f"from/{path}")
    report = copy_tree(sources, several.location("to/"), **places)
    assert report.ok
    assert report.resumed
    assert written_to(several) == SECOND
    with pytest.raises(NotFound, match="from/a does not exist"):
        copy_tree(sources, several.location("to/"), **places)
    sources = [several.location("from/x"), several.location("from/b")]
    leave_job(several, tree_bucket, sources, left=[0, 1])
    several.delete("from/x")
    with pytest.raises(NotFound, match="from/x does not exist"):
        copy_tree(sources, several.location("to/"), **places)


@pytest.mark.parametrize("fault", ["whole.after", "whole.after@2"])
def test_folders_of_a_store(tmp_path: Path, fault: str) -> None:
    """Each goes in one transaction; killed after the first or the second: each object is told
    once."""
    with open_project(str(tmp_path / "store")) as project:
        project.create_bucket("photos")
        for path, content in {**FIRST, **SECOND}.items():
            project.upload("photos", path, content)
    report = tmp_path / "rows.jsonl"
    child = Child(
        tmp_path / "state",
        ["calque://photos/a", "calque://photos/b"],
        "calque://photos/to/",
        kind="mv",
        report=report,
        service={"project": str(tmp_path / "store")},
    )
    died = child.run(f"{fault}:kill")
    assert died.returncode == -signal.SIGKILL, died.stderr
    assert child.finish()["exit_code"] == 0
    with Operator.from_uri("calque://photos", project=str(tmp_path / "store")) as photos:
        found = objects_of(photos)
    assert found == {f"to/{path}": content for path, content in {**FIRST, **SECOND}.items()}
    told = sorted(json.loads(line)["path"] for line in report.read_text().splitlines())
    assert told == sorted({**FIRST, **SECOND})
