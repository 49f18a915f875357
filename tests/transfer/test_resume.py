"""Runs that are killed anywhere, and gone on with."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from random import Random

import pytest

from calque.ledger import open_ledger
from calque.ledger.jobs import end_job, list_jobs
from calque.operator import Operator
from calque.operator.services.fs.marker import is_temporary
from calque.transfer.api import copy_tree
from calque.transfer.jobs.journal import Journal
from calque.transfer.jobs.open_job import configured_ledger, open_job
from calque.transfer.model import Row, new_job_id
from calque.transfer.plan.pairing import pair_up
from calque.transfer.plan.places import open_target
from calque.transfer.report.report import Report
from calque.transfer.report.report_file import read_report
from calque.transfer.request.tree_request import TreeRequest
from tests.servers.proxy import Fault, FaultProxy
from tests.servers.seaweedfs import S3Server
from tests.transfer.conftest import MakeTree, s3_options
from tests.transfer.killed_run import Child

COUNT = 300
STEPS = ("tree.listed", "tree.copied", "tree.told", "journal.note")


def fill(folder: Path, count: int = COUNT) -> dict[str, bytes]:
    """A tree of small files in some folders."""
    made = {}
    for number in range(count):
        path = folder / f"d{number % 7}" / f"{number:04d}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * (number % 50))
        made[str(path.relative_to(folder))] = path.read_bytes()
    return made


def files(folder: Path) -> list[Path]:
    """All files but those that a killed process left, which a sweep finds."""
    return [each for each in folder.rglob("*") if each.is_file() and not is_temporary(each.name)]


def tree_of(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in files(folder)}


def inodes(folder: Path) -> dict[str, int]:
    return {str(each.relative_to(folder)): each.stat().st_ino for each in files(folder)}


def kill_and_resume(tmp_path: Path, steps: list[str], kind: str) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    wanted = fill(source)
    report = tmp_path / f"report.{kind}"
    # Notes are made by the clock: a run that is to have some takes its time.
    slow = {"bandwidth": 5000} if any("journal.note" in step for step in steps) else {}
    child = Child(tmp_path / "state", f"{source}/", f"{target}/", report=report, **slow)
    done: dict[str, int] = {}
    for number, step in enumerate(steps):
        died = child.run(f"{step}:kill")
        if died.returncode == 0 and number:
            break  # it was over before it came to that step
        assert died.returncode == -signal.SIGKILL, died.stderr
        told = {row.path for row in read_report(report)}
        before = inodes(target) if target.exists() else {}
        done = {path: before[path] for path in told}
    else:
        told = child.finish()
        totals = told["totals"]
        assert isinstance(totals, dict)
        assert totals["copied"]["objects"] + totals["up_to_date"]["objects"] == COUNT
    after = inodes(target)
    assert {path: after[path] for path in done} == done, "what was told as done was done again"
    assert tree_of(target) == wanted
    rows = [row.path for row in read_report(report)]
    assert sorted(rows) == sorted(wanted), "each object has exactly one row"
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted(
        [report.name, "source", "state", "target"]
    )


@pytest.mark.parametrize(
    ("steps", "kind"),
    [
        (["tree.copied@1"], "csv"),
        (["tree.told@150", "journal.note@3"], "jsonl"),
        (["tree.listed@9", "tree.copied@40", "tree.told@60"], "parquet"),
    ],
)
def test_killed_and_resumed(tmp_path: Path, steps: list[str], kind: str) -> None:
    """Whatever it was at, and however often: the right target, each object told once, and nothing
    that was told as done is done again."""
    kill_and_resume(tmp_path, steps, kind)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(30))
def test_killed_anywhere(tmp_path: Path, seed: int) -> None:
    """The same at thirty seeded points."""
    chance = Random(seed)
    most = {"tree.listed": 10, "tree.copied": 200, "tree.told": 200, "journal.note": 6}
    steps = [chance.choice(STEPS) for _ in range(1 + seed % 3)]
    visits = [f"{step}@{chance.randint(1, most[step])}" for step in steps]
    kill_and_resume(tmp_path, visits, chance.choice(["jsonl", "csv", "parquet"]))


def test_killed_while_deleting(tmp_path: Path) -> None:
    """A sync that died among its deletes ends with a target like the source, each told once."""
    source, target = tmp_path / "source", tmp_path / "target"
    wanted = fill(source, 40)
    there = {**fill(target, 90), "all/of/it": b"1"}
    (target / "all/of").mkdir(parents=True)
    (target / "all/of/it").write_bytes(b"1")
    report = tmp_path / "report.jsonl"
    child = Child(
        tmp_path / "state",
        f"{source}/",
        f"{target}/",
        kind="sync",
        report=report,
        delete=True,
        max_delete="100%",
    )
    assert child.run("tree.deleted@50:kill").returncode == -signal.SIGKILL
    assert child.finish()["no_deletes"] == ""
    assert tree_of(target) == wanted
    assert not (target / "all").exists(), "a folder that the killed process has emptied"
    assert sorted(row.path for row in read_report(report)) == sorted({*there, *wanted})


def test_killed_while_moving(tmp_path: Path) -> None:
    """Nothing is lost, and what was moved has its row although no listing shows it any more."""
    source, target = tmp_path / "source", tmp_path / "target"
    wanted = fill(source, 60)
    report = tmp_path / "report.jsonl"
    places = (tmp_path / "state", f"{source}/", f"{target}/")
    child = Child(*places, kind="mv", report=report, concurrent=1)
    for step in ("tree.told@20", "tree.moved@1", "tree.moved@15"):
        assert child.run(f"{step}:kill").returncode == -signal.SIGKILL
        assert tree_of(source) | tree_of(target) == wanted
    child.finish()
    assert list(source.iterdir()) == []
    assert tree_of(target) == wanted
    assert sorted(row.path for row in read_report(report)) == sorted(wanted)


def test_other_options_are_refused(tmp_path: Path) -> None:
    """An unfinished job is not gone on with by another request: it is named, with what differs.
    It may be begun anew; and how fast it runs is nothing that makes it another."""
    source, target = tmp_path / "source", tmp_path / "target"
    wanted = fill(source, 60)
    child = Child(tmp_path / "state", f"{source}/", f"{target}/")
    assert child.run("tree.told@10:kill").returncode == -signal.SIGKILL
    other = child.run(compare="size")
    assert other.returncode == 1
    assert "was left unfinished, with other options: compare" in other.stderr
    assert "--restart" in other.stderr
    anew = child.run("tree.listed@1:kill", compare="size", restart=True)
    assert anew.returncode == -signal.SIGKILL
    paced = child.run(compare="size", concurrent=3)
    assert paced.returncode == 0, paced.stderr
    assert tree_of(target) == wanted


MIB = 1024 * 1024


def test_parts_of_a_large_object_survive_a_kill(
    tmp_path: Path, tree_bucket: S3Server, s3: Operator
) -> None:
    """Parts that the server holds are not copied again, small objects that were done neither."""
    content = os.urandom(22 * MIB)
    s3.write("from/big", content)
    for number in range(20):
        s3.write(f"from/small-{number:02d}", b"x")
    with FaultProxy(tree_bucket.endpoint) as proxy:
        service = {
            **s3_options(tree_bucket),
            "endpoint_url": proxy.endpoint,
            "threshold": 6 * MIB,
            "part_size": 5 * MIB,
        }
        report = tmp_path / "report.jsonl"
        child = Child(
            tmp_path / "state",
            s3.location("from/"),
            s3.location("to/"),
            report=report,
            service=service,
            concurrent=2,
        )
        process = child.spawn()
        fourth = Fault(
            method="PUT",
            contains="partNumber=4",
            hook=lambda exchange: process.kill(),
            drop=True,
        )
        proxy.add(fourth)
        process.communicate(timeout=200)
        assert process.returncode == -signal.SIGKILL
        told = {row.path for row in read_report(report)}
        before = proxy.log[-1].number
        child.finish()
        again = [each for each in proxy.log if each.number > before]
    parts = [each for each in again if "partNumber=" in each.target and "10000" not in each.target]
    numbers = sorted(each.target.partition("partNumber=")[2][0] for each in parts)
    assert "4" in numbers
    assert "1" not in numbers, numbers
    assert not [each for each in again if "uploads" in each.target and each.method == "POST"]
    copied = {each.target.rpartition("/")[2] for each in again if each.method == "PUT"}
    assert not {path for path in told if path in copied}
    assert s3.read("to/big") == content
    assert sorted(row.path for row in read_report(report)) == sorted(
        ["big", *(f"small-{number:02d}" for number in range(20))]
    )
    assert list(s3.leftovers("to/")) == []


def test_two_that_resume_at_once(tmp_path: Path) -> None:
    """One wins by its lease, the other is told which job is at it."""
    source, target = tmp_path / "source", tmp_path / "target"
    wanted = fill(source, 60)
    child = Child(tmp_path / "state", f"{source}/", f"{target}/")
    assert child.run("tree.told@10:kill").returncode == -signal.SIGKILL
    with open_ledger(tmp_path / "state" / "calque" / "ledger.db") as ledger:
        (left,) = list_jobs(ledger)
        first = Journal.resume(ledger, left.job_id)
        second = child.run()
        assert second.returncode == 1
        assert f"job {left.job_id} is at work on these two trees" in second.stderr
        end_job(ledger, first.job, "STOPPED")
    assert child.finish()["job"] == left.job_id
    assert tree_of(target) == wanted


def test_another_pattern_is_another_job(make_tree: MakeTree, tmp_path: Path) -> None:
    """What is left of ``*.a`` says nothing of ``*.b``, of which nothing was copied yet."""
    source = make_tree(
        "source", {f"{number:03}.{kind}": b"1" for number in range(40) for kind in "ab"}
    )
    seen: list[Row] = []

    def stumble(row: Row) -> None:
        seen.append(row)
        if len(seen) == 30:
            raise RuntimeError("a listener that fails")

    with pytest.raises(RuntimeError):
        copy_tree(f"{source}/*.a", tmp_path / "target", on_event=stumble)
    report = copy_tree(f"{source}/*.b", tmp_path / "target")
    assert not report.resumed
    assert report.totals.of("copied").objects == 40
    assert copy_tree(f"{source}/*.a", tmp_path / "target").resumed
    assert tree_of(tmp_path / "target") == tree_of(source)


def test_a_large_copy_under_way_is_made_once(make_tree: MakeTree, tmp_path: Path) -> None:
    """It is noted by itself, and its range may hold it too, where a small one before it had not
    ended: whoever resumes copies it once, and tells it once."""
    source = make_tree("source", {"a": b"small", "big": bytes(9 * MIB)})
    request = TreeRequest(kind="cp", sources=[f"{source}/"], target=str(tmp_path / "target"))
    trees = pair_up(request, open_target(request.target, {}, ()), ())
    begun = open_job(request, trees, Report(new_job_id(), "cp", (), ""), configured_ledger)
    assert begun.journal is not None
    begun.journal.keep_copy(0, "big")
    begun.journal.let_go()
    begun.close()
    rows: list[Row] = []
    report = copy_tree(f"{source}/", tmp_path / "target", on_event=rows.append)
    assert report.resumed
    assert sorted((row.path, row.outcome) for row in rows) == [("a", "copied"), ("big", "copied")]
    assert report.totals.of("copied").objects == 2


@pytest.mark.parametrize("kind", ["cp", "mv"])
def test_a_large_copy_that_ended_before_a_note(
    make_tree: MakeTree, tmp_path: Path, kind: str
) -> None:
    """It counts in the note that forgets it: killed before, whoever resumes finds and counts it."""
    source = make_tree("source", {"big": os.urandom(9 * MIB)})
    child = Child(
        tmp_path / "state", f"{source}/", f"{tmp_path}/target/", kind=kind, compare="size"
    )
    assert child.run("job.ends:kill").returncode == -signal.SIGKILL
    totals = child.finish()["totals"]
    assert isinstance(totals, dict)
    assert totals["copied"]["objects"] + totals["up_to_date"]["objects"] == 1


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_killed_when_the_job_is_over(tmp_path: Path, kind: str) -> None:
    """By then the report is whole: nobody goes on with a job that is over to make it."""
    wanted = fill(tmp_path / "source", 20)
    report = tmp_path / f"report.{kind}"
    child = Child(tmp_path / "state", f"{tmp_path}/source/", f"{tmp_path}/target/", report=report)
    assert child.run("job.ended:kill").returncode == -signal.SIGKILL
    assert report.exists()
    assert sorted(row.path for row in read_report(report)) == sorted(wanted)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_report_that_cannot_be_made_is_made_by_a_resume(tmp_path: Path, kind: str) -> None:
    """Something is in its way at the end: the job is left, and whoever goes on tells of the same
    acts."""
    wanted = fill(tmp_path / "source", 20)
    report = tmp_path / f"report.{kind}"
    in_the_way = tmp_path / f"report.{kind}.new"
    in_the_way.mkdir()
    child = Child(tmp_path / "state", f"{tmp_path}/source/", f"{tmp_path}/target/", report=report)
    failed = child.run()
    assert failed.returncode == 1
    assert "cannot be used" in failed.stderr
    in_the_way.rmdir()
    child.finish()
    told = [(row.path, row.outcome) for row in read_report(report)]
    assert sorted(told) == [(path, "copied") for path in sorted(wanted)]
    assert not report.with_name(f"{report.name}.rows").exists()
