"""Jobs in the console: gone on with, stopped, given up; and those of another machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from calque.ledger import Ledger
from calque.ledger.job_record import Job
from calque.ledger.jobs import begin_job, end_job, find_job, list_jobs, remove_job, take_job
from calque.ledger.lease import this_process
from calque.transfer.api import sync_tree
from calque.transfer.jobs.journal import Journal
from calque.transfer.jobs.open_job import open_job
from calque.transfer.model import new_job_id
from calque.transfer.plan.pairing import pair_up
from calque.transfer.plan.places import open_target
from calque.transfer.report.report import Report
from calque.transfer.request.tree_request import TreeRequest
from tests.console.world import Visitor, World


@pytest.fixture
def left(world: World, tmp_path: Path) -> Iterator[Job]:
    """A job over two local trees that was left before it copied anything."""
    job = leave_job(world, tmp_path)
    yield job
    if job.job_id in [each.job_id for each in list_jobs(world.ledger)]:
        remove_job(world.ledger, job.job_id)


def leave_job(world: World, folder: Path) -> Job:
    (folder / "source").mkdir()
    for number in range(5):
        (folder / "source" / f"{number}.txt").write_text("12345")
    request = TreeRequest(kind="cp", sources=[f"{folder}/source/"], target=str(folder / "target"))
    trees = pair_up(request, open_target(request.target, {}, ()), ())
    sources, ledger = (f"{folder}/source/",), world.ledger
    report = Report(new_job_id(), "cp", sources, str(folder / "target"))
    opened = open_job(request, trees, report, lambda: ledger)
    assert isinstance(opened.journal, Journal)
    opened.journal.let_go()
    return find_job(world.ledger, opened.journal.job.job_id)


def wait_until_over(ledger: Ledger, job_id: str) -> Job:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        job = find_job(ledger, job_id)
        if job.is_over:
            return job
        time.sleep(0.05)
    raise AssertionError(f"{job_id} did not end: {job}")


def of(job: Job, verb: str) -> str:
    return f"/job/{verb}?id={job.job_id}"


def test_a_job_that_was_left_is_gone_on_with(
    visitor: Visitor, world: World, left: Job, tmp_path: Path
) -> None:
    """By a process where the console runs; then it is over, and there is nothing to resume."""
    assert visitor.post(of(left, "resume")).status_code == 200
    assert wait_until_over(world.ledger, left.job_id).state == "DONE"
    assert len([*(tmp_path / "target").iterdir()]) == 5
    told = visitor.json(f"/job?id={left.job_id}")
    assert (told["job"]["state"], told["job"]["copied"], told["failure"]) == ("DONE", 5, None)
    assert visitor.post(of(left, "resume")).status_code == 409


def test_what_keeps_a_job_from_going_on_is_shown(
    visitor: Visitor, left: Job, tmp_path: Path
) -> None:
    """The words of the command, with what to do; the job is still there."""
    for each in (tmp_path / "source").iterdir():
        each.unlink()
    (tmp_path / "source").rmdir()
    visitor.post(of(left, "resume"))
    end = time.monotonic() + 120
    told: Any = None
    while time.monotonic() < end and (told is None or told["begun_here"]):
        told = visitor.json(f"/job?id={left.job_id}")
        time.sleep(0.05)
    assert "source" in told["failure"]
    assert visitor.json(f"/job?id={left.job_id}")["job"]["state"] == "STOPPED"
    assert "could not" in visitor.get(f"/job?id={left.job_id}").text


def test_a_job_is_given_up(visitor: Visitor, world: World, left: Job) -> None:
    """It is gone from the list; again there is none."""
    assert visitor.post(of(left, "abort")).url.endswith("/jobs")
    assert left.job_id not in visitor.get("/jobs").text
    assert visitor.post(of(left, "abort")).status_code == 404


def test_a_running_job_is_stopped(visitor: Visitor, world: World, left: Job) -> None:
    """Whoever runs it; while it runs it is neither resumed nor given up."""
    running = take_job(world.ledger, left.job_id, "elsewhere/1/1", 600.0)
    assert visitor.json(f"/job?id={left.job_id}")["job"]["may_stop"]
    assert visitor.post(of(left, "resume")).status_code == 409
    assert visitor.post(of(left, "abort")).status_code == 409
    assert visitor.post(of(left, "stop")).status_code == 200
    assert find_job(world.ledger, running.job_id).message == "stopped by the console"
    assert visitor.post(of(left, "stop")).status_code == 409


def test_files_of_another_machine_are_left_to_it(visitor: Visitor, world: World) -> None:
    """The same path may be something else here: the command is shown, and nothing is run."""
    request = {"sources": ["/srv/photos/"], "target": "s3://backup/"}
    job = Job("20260106T000000-other", "sync", "a", "b", "other", request, owner="nas:x/1/1")
    end_job(world.ledger, begin_job(world.ledger, job, [], 60.0), "STOPPED")
    shown = visitor.get(f"/job?id={job.job_id}").text
    assert "files of another machine" in shown
    assert "job/resume" not in shown
    refused = visitor.post(of(job, "resume"))
    assert refused.status_code == 501
    assert "calque jobs resume" in refused.text
    remove_job(world.ledger, job.job_id)


def test_a_tree_that_did_not_go_well_is_an_error_of_the_day(
    visitor: Visitor, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the overview, with what to do, for a day; its page says how to make up for it."""
    monkeypatch.setenv("CALQUE_LEDGER_URL", str(world.ledger.where))
    (tmp_path / "source/both").mkdir(parents=True)
    (tmp_path / "source/both/file.txt").write_text("1")
    (tmp_path / "source/good.txt").write_text("1")
    (tmp_path / "target").mkdir()
    (tmp_path / "target/both").write_text("a file where a folder is needed")
    report = sync_tree(f"{tmp_path}/source/", f"{tmp_path}/target/")
    assert report.exit_code == 3
    (shown,) = visitor.json()["sections"]["ledger"]["troubled_jobs"]
    assert (shown["job"], shown["state"], shown["failed"]) == (report.job, "PARTLY", 1)
    assert shown["advice"] == f"calque jobs show {report.job}"
    assert shown["advice"] in visitor.get().text
    assert "run the same command again" in visitor.get(f"/job?id={report.job}").text
    remove_job(world.ledger, str(report.job))
    assert visitor.json()["sections"]["ledger"]["troubled_jobs"] == []


def test_a_beginning_of_an_id_changes_nothing(visitor: Visitor, left: Job) -> None:
    """It is enough to look, as on the command line, and not to change."""
    assert visitor.get(f"/job?id={left.job_id[:-1]}").status_code == 200
    for verb in ("resume", "stop", "abort", "forget"):
        assert visitor.post(f"/job/{verb}?id={left.job_id[:-1]}").status_code == 404
    assert this_process().split("/")[0] in left.owner
