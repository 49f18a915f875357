"""Runs that are stopped and gone on with: what is no object is told, and counts, once as well."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from calque.transfer.api import PreparedRun
from calque.transfer.model import Row
from calque.transfer.report.report import Report
from calque.transfer.report.report_file import read_report
from calque.transfer.request.keywords import options_from
from calque.transfer.request.options import Kind
from calque.transfer.request.tree_request import TreeRequest
from calque.transfer.run import lister
from tests.transfer.conftest import MakeTree, files_of


def run(
    source: Path,
    target: Path,
    *,
    kind: Kind = "cp",
    stop_at: str = "",
    report: Path | None = None,
    **options: object,
) -> tuple[Report, list[Row]]:
    """A run that is stopped when a path has its row; what it tells."""
    request = TreeRequest(
        kind=kind,
        sources=[f"{source}/"],
        target=f"{target}/",
        options=options_from(kind, {"concurrent": 1, "fsync": "none", **options}),  # type: ignore[typeddict-item]
        report=None if report is None else str(report),
    )
    rows: list[Row] = []

    def note(row: Row) -> None:
        rows.append(row)
        if row.path == stop_at:
            prepared.stop()

    prepared = PreparedRun(request, on_event=note)
    return prepared.run(), rows


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left is told by pages, so there are some."""
    monkeypatch.setattr(lister, "_PAGE", 10)


@pytest.mark.parametrize("kind", ["cp", "mv"])
@pytest.mark.parametrize("report", ["report.jsonl", None])
def test_names(make_tree: MakeTree, tmp_path: Path, kind: Kind, report: str | None) -> None:
    """Those that were done are not looked at again, and a missing one is missed once."""
    wanted = {f"{number:02}": b"x" for number in range(0, 60, 2)}
    source, target = make_tree("source", wanted), tmp_path / "target"
    names = [f"{number:02}" for number in range(60)]
    file = None if report is None else tmp_path / report
    first, told = run(source, target, kind=kind, stop_at="30", report=file, files_from=names)
    assert first.stopped
    last, more = run(source, target, kind=kind, report=file, files_from=names)
    assert last.resumed
    totals = last.totals
    assert totals.of("copied").objects + totals.of("up to date").objects == 30
    assert totals.of("failed").objects == 30
    assert files_of(target) == wanted
    if file is not None:  # else what was done behind an object that was not is looked at again
        assert Counter(row.path for row in told + more) == Counter(names)
        assert Counter(row.path for row in read_report(file)) == Counter(names)


@pytest.mark.parametrize("stop_at", ["13/f", "39/f", "50/g-link"])
@pytest.mark.parametrize("report", ["report.jsonl", None])
def test_what_is_no_file(
    make_tree: MakeTree, tmp_path: Path, report: str | None, stop_at: str
) -> None:
    """Links that lead nowhere, pipes and empty folders, whether a file comes after them or not."""
    wanted = {f"{number:02}/f": b"x" for number in range(40)}
    source, target = make_tree("source", wanted), tmp_path / "target"
    for number in range(60):
        folder = source / f"{number:02}"
        (folder / "empty").mkdir(parents=True, exist_ok=True)
        os.mkfifo(folder / "e-pipe")
        os.symlink("nowhere", folder / "g-link")
    for number in range(60, 80):
        (source / f"{number:02}").mkdir()
    file = None if report is None else tmp_path / report
    others = {f"{number:02}/{name}" for number in range(60) for name in ("e-pipe", "g-link")}
    first, told = run(source, target, stop_at=stop_at, report=file)
    assert first.stopped
    last, more = run(source, target, report=file)
    assert last.resumed
    totals = last.totals
    assert totals.of("copied").objects + totals.of("up to date").objects == 40
    assert totals.of("skipped").objects == 120
    if file is not None:
        assert Counter(row.path for row in told + more) == Counter([*wanted, *others])
    assert files_of(target) == wanted
    made = {str(each.relative_to(target)) for each in target.rglob("*") if each.is_dir()}
    assert made == {str(each.relative_to(source)) for each in source.rglob("*") if each.is_dir()}


def test_an_error_before_the_stop_forbids_deletes_after_it(
    make_tree: MakeTree, tmp_path: Path
) -> None:
    """A folder that a file is in the way of: whoever resumes knows of it, and deletes nothing."""
    source = make_tree("source", {f"f{number:02}": b"1" for number in range(40)})
    (source / "empty").mkdir()
    there = {"empty": b"a file", "old": b"0"}
    target = make_tree("target", there)
    first, _ = run(source, target, kind="sync", stop_at="f30", delete=True)
    assert (first.stopped, first.totals.problems) == (True, 1)
    last, _ = run(source, target, kind="sync", delete=True)
    assert last.resumed
    assert "failed" in last.no_deletes
    assert files_of(target).items() >= there.items()
