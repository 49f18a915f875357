"""Runs that are killed between a delete, or a move, and its row: whoever resumes writes the row."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path

import pytest

from calque.ledger import open_ledger
from calque.ledger.job_progress import acts_of
from calque.ledger.jobs import list_jobs
from calque.operator import Operator
from calque.transfer.report.report_file import read_report
from tests.servers.seaweedfs import S3Server
from tests.transfer.conftest import MakeTree, Tree, files_of, objects_of, s3_options
from tests.transfer.killed_run import Child

KEPT: Tree = {f"k/{number:02}": b"kept" for number in range(3)}
GONE: Tree = {f"d{number % 3}/{number:02}": b"x" * number for number in range(45)}


class Places:
    """Two trees, ``from`` and ``to``, of one service, and what lies in them."""

    def __init__(self, tmp_path: Path, make_tree: MakeTree, s3: Operator | None) -> None:
        self._root = tmp_path
        self._make_tree = make_tree
        self._s3 = s3

    def fill(self, name: str, content: Tree) -> None:
        if self._s3 is None:
            self._make_tree(name, content)
            return
        for path, data in content.items():
            self._s3.write(f"{name}/{path}", data)

    def at(self, name: str) -> str:
        return f"{self._root / name}/" if self._s3 is None else self._s3.location(f"{name}/")

    def names(self, name: str) -> set[str]:
        """Names alone: requests of a killed process may still be under way at the server."""
        if self._s3 is None:
            return set(files_of(self._root / name))
        return {entry.path.partition("/")[2] for entry in self._s3.list(f"{name}/")}

    def content(self, name: str) -> Tree:
        if self._s3 is None:
            return files_of(self._root / name)
        found = objects_of(self._s3)
        cut = len(name) + 1
        return {path[cut:]: data for path, data in found.items() if path.startswith(f"{name}/")}


@pytest.fixture(params=["fs", "s3"])
def places(
    request: pytest.FixtureRequest, tmp_path: Path, make_tree: MakeTree
) -> tuple[Places, dict[str, object]]:
    """Trees on files, and on a server; with the options by which it is reached."""
    if request.param == "fs":
        return Places(tmp_path, make_tree, None), {}
    server: S3Server = request.getfixturevalue("tree_bucket")
    return Places(tmp_path, make_tree, request.getfixturevalue("s3")), s3_options(server)


def announced(state: Path) -> int:
    """How many acts the one job that there is has announced."""
    with open_ledger(state / "calque" / "ledger.db") as ledger:
        (job,) = list_jobs(ledger)
        return len(acts_of(ledger, job.job_id))


@pytest.mark.parametrize("report", ["report.csv", None])
def test_a_sync_that_deletes(
    places: tuple[Places, dict[str, object]], tmp_path: Path, state: Path, report: str | None
) -> None:
    """Killed when some of a batch are gone and nothing was told, and again: each object that went
    has one row, and without rows the counts are right."""
    trees, service = places
    trees.fill("from", KEPT)
    trees.fill("to", {**KEPT, **GONE})
    file = None if report is None else tmp_path / report
    ends = (trees.at("from"), trees.at("to"))
    limits = {"delete": True, "max_delete": "100%"}
    child = Child(state, *ends, kind="sync", report=file, service=service, **limits)  # type: ignore[arg-type]
    assert child.run("tree.deleted@1:kill").returncode == -signal.SIGKILL
    assert len(trees.names("to")) < 48
    if file is not None:
        assert child.run("journal.note@1:kill").returncode == -signal.SIGKILL
    totals = child.finish()["totals"]
    assert isinstance(totals, dict)
    assert totals["deleted"] == {"objects": 45, "bytes": sum(map(len, GONE.values()))}
    assert announced(state) == 0
    if file is not None:
        assert Counter(row.path for row in read_report(file)) == Counter([*KEPT, *GONE])


def test_a_removal(places: tuple[Places, dict[str, object]], tmp_path: Path, state: Path) -> None:
    """``rm -r`` is a job as well: killed among its rows, the same command goes on with it."""
    trees, service = places
    trees.fill("from", {**KEPT, **GONE})
    file = tmp_path / "report.jsonl"
    child = Child(state, trees.at("from"), "", kind="rm", report=file, service=service)
    assert child.run("tree.deleted@20:kill").returncode == -signal.SIGKILL
    told = child.finish()
    assert (told["resumed"], told["exit_code"]) == (True, 0)
    assert trees.content("from") == {}
    assert Counter(row.path for row in read_report(file)) == Counter([*KEPT, *GONE])
    assert {row.outcome for row in read_report(file)} == {"deleted"}


@pytest.mark.parametrize("report", ["report.parquet", None])
def test_a_move(
    places: tuple[Places, dict[str, object]], tmp_path: Path, state: Path, report: str | None
) -> None:
    """A source that was moved, renamed or copied and deleted, has one row, with what it became."""
    trees, service = places
    trees.fill("from", {**KEPT, **GONE})
    file = None if report is None else tmp_path / report
    ends = (trees.at("from"), trees.at("to"))
    child = Child(state, *ends, kind="mv", report=file, service=service, concurrent=4)
    for fault in ("tree.moved@1", "tree.moved@30"):
        assert child.run(f"{fault}:kill").returncode == -signal.SIGKILL
    assert trees.names("from") | trees.names("to") == {**KEPT, **GONE}.keys()
    totals = child.finish()["totals"]
    assert isinstance(totals, dict)
    assert totals["copied"]["objects"] + totals["up_to_date"]["objects"] == 48
    assert (trees.content("from"), trees.content("to")) == ({}, {**KEPT, **GONE})
    if file is not None:
        rows = list(read_report(file))
        assert Counter(row.path for row in rows) == Counter([*KEPT, *GONE])
        sizes = {path: len(data) for path, data in {**KEPT, **GONE}.items()}
        assert {row.path: row.target_size for row in rows} == sizes


@pytest.mark.parametrize("kind", ["mv", "rm"])
def test_a_folder_that_is_gone_with_a_report_beside_it(tmp_path: Path, kind: str) -> None:
    """Killed when nothing was left to do: what was named is gone, and a report beside it is not
    taken for one that lies in it."""
    (tmp_path / "folder" / "deep").mkdir(parents=True)
    (tmp_path / "folder" / "deep" / "file").write_bytes(b"1")
    file = tmp_path / "folder.jsonl"
    places = (tmp_path / "state", str(tmp_path / "folder"), str(tmp_path / "to"))
    child = Child(*places, kind=kind, report=file)
    # The last note of all: those in between are too many to be counted.
    assert child.run("job.ends:kill").returncode == -signal.SIGKILL
    assert not (tmp_path / "folder").exists()
    assert child.finish()["resumed"]
    assert [row.path for row in read_report(file)] == ["deep/file"]
