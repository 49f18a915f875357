"""The journal of a run, on both databases."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from calque.ledger import Ledger, open_ledger
from calque.ledger.job_progress import acts_of
from calque.ledger.job_record import Job
from calque.ledger.jobs import find_job, list_jobs
from calque.operator import Operator
from calque.transfer.api import PreparedRun, copy_tree
from calque.transfer.jobs.journal import Journal, new_owner
from calque.transfer.model import WHOLE, KeyRange, Row, Totals
from calque.transfer.report.report import Report
from calque.transfer.request.options import TreeOptions
from calque.transfer.request.tree_request import TreeRequest, differences
from tests.ledger.conftest import make_ledger
from tests.servers.postgres import PostgresServer
from tests.servers.seaweedfs import S3Server
from tests.transfer.conftest import MakeTree, files_of, s3_options

FILES = {f"d{number % 5}/{number:03d}": b"x" for number in range(60)}


@pytest.fixture(params=("sqlite", "postgres"))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where the ledger lives."""
    if request.param == "sqlite":
        yield str(tmp_path / "ledger.db")
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    made = server.prepared(make_ledger)
    yield made
    server.drop(made)


@pytest.fixture
def request_of_trees(make_tree: MakeTree, tmp_path: Path) -> TreeRequest:
    return TreeRequest(
        kind="cp",
        sources=[f"{make_tree('source', FILES)}/"],
        target=str(tmp_path / "target"),
        report=str(tmp_path / "report.csv"),
        options=TreeOptions(concurrent=2),
    )


def run(request: TreeRequest, url: str, **more: object) -> Report:
    return PreparedRun(request, ledger=lambda: open_ledger(url), **more).run()  # type: ignore[arg-type]


def jobs(url: str) -> list[tuple[str, int]]:
    with open_ledger(url) as ledger:
        return [(job.state, Totals.from_json(job.totals).done) for job in list_jobs(ledger)]


def test_a_run_is_a_job(request_of_trees: TreeRequest, url: str) -> None:
    """It is over when the run is, and counts what was done."""
    report = run(request_of_trees, url)
    assert report.ok
    assert jobs(url) == [("DONE", len(FILES))]


def test_an_error_leaves_a_job_to_resume(
    request_of_trees: TreeRequest, url: str, tmp_path: Path
) -> None:
    """What ends a run from outside lets the job go: the same request goes on in this very
    process, under the same id, and each object has one row."""
    seen: list[Row] = []

    def stumble(row: Row) -> None:
        seen.append(row)
        if len(seen) == 20:
            raise RuntimeError("a listener that fails")

    with pytest.raises(RuntimeError):
        run(request_of_trees, url, on_event=stumble)
    (left,) = jobs(url)
    assert left[0] == "STOPPED"
    report = run(request_of_trees, url)
    assert report.resumed
    assert [state for state, _ in jobs(url)] == ["DONE"]
    assert files_of(tmp_path / "target") == FILES
    done = report.totals.of("copied").objects + report.totals.of("up to date").objects
    assert done == len(FILES)


def test_a_run_that_did_nothing_leaves_no_job(make_tree: MakeTree, url: str) -> None:
    """A source that is not there is an error, and nothing to resume."""
    request = TreeRequest(kind="cp", sources=["/nowhere/at/all/"], target=str(make_tree("t", {})))
    with pytest.raises(FileNotFoundError):
        run(request, url)
    assert jobs(url) == []


def test_without_a_journal(request_of_trees: TreeRequest) -> None:
    """No ledger is opened where none is wanted, and for a dry run."""

    def refuse() -> Ledger:
        raise AssertionError("no ledger was to be opened")

    for options in (TreeOptions(dry_run=True), TreeOptions(journal=False)):
        request = TreeRequest(
            kind="cp",
            sources=request_of_trees.sources,
            target=request_of_trees.target,
            options=options,
        )
        assert PreparedRun(request, ledger=refuse).run().ok


def test_requests_survive_json(request_of_trees: TreeRequest) -> None:
    """A job's request comes back as it was, and differs by name where it differs."""
    told = request_of_trees.to_json()
    again = TreeRequest.from_json(told)
    assert again.to_json() == told
    other = TreeRequest(
        kind="sync",
        sources=request_of_trees.sources,
        target=request_of_trees.target,
        options=TreeOptions(compare="size", concurrent=9),
    )
    assert differences(told, other.to_json()) == ["compare", "kind", "report"]


def test_acts_are_kept_until_they_count(url: str) -> None:
    """Those of a range until nothing of it is left, others until their end is told; whoever resumes
    has their rows, whatever bytes their names are, and then they are his to end."""
    odd = os.fsdecode(b"caf\xe9")
    rows = [Row(odd, "copied", "new", "why", 3, source_etag="e"), Row("b", "deleted", "always")]
    with open_ledger(url) as ledger:
        job = Job("j", "mv", "s", "t", "p", {}, owner=new_owner())
        journal = Journal.begin(ledger, job, 1)
        journal.announce(0, rows, KeyRange("a", "m"))
        journal.announce(1, rows, KeyRange("a", "m"))
        told = journal.announce(0, rows[:1])
        journal.announce(0, rows[1:])

        def note(*left: KeyRange) -> list[int]:
            journal.note(lambda: [(0, each) for each in left], lambda: None)
            return [each.number for each in acts_of(ledger, "j")]

        assert note(KeyRange("l", "z")) == [1, 3, 4]
        with journal.lock:
            journal.settle_acts(told, rows[:1])
        assert note(KeyRange("m"), KeyRange("", "a")) == [4]
        journal.let_go()
        assert Totals.from_json(list_jobs(ledger)[0].totals).of("copied").bytes == 3
        resumed = Journal.resume(ledger, "j")
        assert resumed.unfinished is not None
        assert resumed.unfinished.announced == ((0, (rows[1],)),)
        own = resumed.announce(0, rows)
        resumed.settle_announced(1, rows[1:])  # of another tree
        resumed.note(list, lambda: None)
        assert [each.number for each in acts_of(ledger, "j")] == [4, own]
        resumed.settle_announced(0, rows[1:])
        resumed.note(list, lambda: None)
        assert [each.number for each in acts_of(ledger, "j")] == [own]
        with resumed.lock:
            resumed.settle_acts(own, ())
        resumed.end("DONE", list, lambda: None)
        assert acts_of(ledger, "j") == []


def test_no_secret_is_in_it(
    make_tree: MakeTree, tree_bucket: S3Server, s3: Operator, state: Path
) -> None:
    """Credentials that were given as options lie in no file of the state, while it runs or after:
    whoever resumes finds them anew."""
    source = make_tree("source", {f"{number}": b"x" for number in range(5)})
    seen: list[bytes] = []

    def look(_: object) -> None:
        seen.extend(each.read_bytes() for each in state.rglob("*") if each.is_file())

    options = s3_options(tree_bucket)
    report = copy_tree(f"{source}/", s3.location(""), target_options=options, on_event=look)
    look(None)
    assert report.ok, report.problems
    assert any(report.job.encode() in each for each in seen)
    assert not any(tree_bucket.secret_key.encode() in each for each in seen)


def test_an_older_note_does_not_follow_a_newer_one(url: str) -> None:
    """One that is slow on its way to the ledger was made before the phase changed: the phase, by
    which a killed move of a folder is known again, stays the newer one's."""
    slow, go_on = threading.Event(), threading.Event()

    def flush() -> None:
        slow.set()
        go_on.wait(30)

    with open_ledger(url) as ledger:
        job = Job("j", "mv", "s", "t", "p", {}, owner=new_owner())
        journal = Journal.begin(ledger, job, 1)
        older = threading.Thread(target=journal.note, args=(list, flush))
        older.start()
        assert slow.wait(30)
        journal.phase = WHOLE
        newer = threading.Thread(target=journal.note, args=(list, lambda: None))
        newer.start()
        newer.join(0.3)
        go_on.set()
        older.join()
        newer.join()
        assert find_job(ledger, "j").phase == WHOLE
        journal.let_go()
