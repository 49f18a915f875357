"""Runs that are killed anywhere, and gone on with."""

from __future__ import annotations

import signal
from pathlib import Path
from random import Random

import pytest

from calque.operator.services.fs.marker import is_temporary
from calque.transfer.report_file import read_report
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
    child = Child(tmp_path / "state", f"{source}/", f"{target}/", report=report)
    done: dict[str, int] = {}
    for step in steps:
        died = child.run(f"{step}:kill")
        if died.returncode == 0:
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
        (["tree.listed@1"], "jsonl"),
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
    fill(target, 90)
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
    assert child.run("tree.deleted@20:kill").returncode == -signal.SIGKILL
    assert child.finish()["no_deletes"] == ""
    assert tree_of(target) == wanted
    rows = [row.path for row in read_report(report)]
    assert len(rows) == len(set(rows))


def test_other_options_are_refused(tmp_path: Path) -> None:
    """An unfinished job is not gone on with by another request: it is named, with what differs."""
    source, target = tmp_path / "source", tmp_path / "target"
    wanted = fill(source, 60)
    child = Child(tmp_path / "state", f"{source}/", f"{target}/")
    assert child.run("tree.told@10:kill").returncode == -signal.SIGKILL
    other = child.run(compare="size")
    assert other.returncode == 1
    assert "was left unfinished, with other options: compare" in other.stderr
    assert "--restart" in other.stderr
    anew = child.run(compare="size", restart=True)
    assert anew.returncode == 0, anew.stderr
    assert tree_of(target) == wanted


def test_another_pace_is_no_other_request(tmp_path: Path) -> None:
    """How fast it runs may be chosen anew."""
    source, target = tmp_path / "source", tmp_path / "target"
    fill(source, 60)
    child = Child(tmp_path / "state", f"{source}/", f"{target}/")
    assert child.run("tree.told@10:kill").returncode == -signal.SIGKILL
    assert child.run(concurrent=3).returncode == 0
