"""Jobs of trees in the ledger: one holder, progress all or nothing, no row for an object."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from sqlalchemy import func, select

from calque.errors import ConditionNotMatch, NotFound
from calque.ledger import Ledger
from calque.ledger.identity import DAY
from calque.ledger.job_progress import (
    Failure,
    Progress,
    copies_of,
    failures_of,
    keep_copy,
    note_progress,
    spans_of,
)
from calque.ledger.job_record import Job, Span
from calque.ledger.jobs import (
    begin_job,
    end_job,
    expire_jobs,
    find_job,
    find_unfinished,
    jobs_at_work,
    list_jobs,
    remove_job,
    renew_job,
    stop_job,
    take_job,
)
from calque.ledger.schema import job_failures, job_ranges, jobs
from tests.ledger.conftest import Clock

ALL = [Span()]


def job(name: str = "one", *, owner: str = "host/1/1", pair: str = "a b") -> Job:
    return Job(
        job_id=name,
        kind="cp",
        source="s3://a/",
        target="s3://b/",
        pair=pair,
        request={"compare": "default"},
        owner=owner,
    )


def test_begin_and_find(ledger: Ledger, clock: Clock) -> None:
    """A job is found as it was begun, whole and by the beginning of its id."""
    begun = begin_job(ledger, job("20260101-abc"), ALL, 60)
    assert begun.request == {"compare": "default"}
    assert begun.lease_until == clock.now + 60_000_000
    assert find_job(ledger, "20260101") == begun
    assert list_jobs(ledger) == [begun]
    assert spans_of(ledger, begun.job_id) == ALL
    for wrong in ("", "x", "%"):
        with pytest.raises(NotFound):
            find_job(ledger, wrong)


def test_a_running_job_is_stopped_by_others(ledger: Ledger, clock: Clock) -> None:
    """Its owner is told with its next note, and another can take it; else nothing is stopped."""
    begun = begin_job(ledger, job("one"), ALL, 60)
    clock.now += 5
    stopped = stop_job(ledger, "one", "somebody")
    assert (stopped.state, stopped.message) == ("STOPPED", "stopped by somebody")
    assert stopped.updated_at == clock.now
    with pytest.raises(ConditionNotMatch, match="was stopped"):
        note_progress(ledger, begun, Progress(spans=ALL, totals={}))
    with pytest.raises(ConditionNotMatch, match="does not run"):
        stop_job(ledger, "one", "somebody")
    assert take_job(ledger, "one", "host/2/2", 60).state == "RUNNING"


def test_jobs_that_were_worked_on_lately(ledger: Ledger, clock: Clock) -> None:
    """Those that run, however long, and those that ended since; at most as many as asked for."""
    begin_job(ledger, job("runs", pair="1"), ALL, 60)
    clock.now += 1
    end_job(ledger, begin_job(ledger, job("over", pair="2"), ALL, 60), "DONE")
    clock.now += 1
    assert [each.job_id for each in jobs_at_work(ledger, clock.now - 1)] == ["over", "runs"]
    assert [each.job_id for each in jobs_at_work(ledger, clock.now)] == ["runs"]
    assert [each.job_id for each in list_jobs(ledger, limit=1)] == ["over"]


def test_names_of_any_bytes(ledger: Ledger) -> None:
    """No database takes them as text: they are shown escaped, and kept exactly in the request."""
    told = replace(job(), source="caf\udce9", report="r\udce9", request={"report": "r\udce9"})
    begun = begin_job(ledger, told, ALL, 60)
    assert begun.source == r"caf\udce9"
    assert begun.report == "r\udce9"
    failure = Failure(b"\xe9", "DataError", "caf\udce9")
    note_progress(ledger, begun, Progress(spans=ALL, totals={}, failures=[failure]))
    assert failures_of(ledger, "one") == [Failure(b"\xe9", "DataError", r"caf\udce9")]
    end_job(ledger, begun, "STOPPED", "caf\udce9")
    assert find_job(ledger, "one").message == r"caf\udce9"


def test_the_same_trees_have_one_job_at_a_time(ledger: Ledger, clock: Clock) -> None:
    """A second one is refused by the name of the first; other trees, and dead holders, are not."""
    first = begin_job(ledger, job("one"), ALL, 60)
    with pytest.raises(ConditionNotMatch, match="job one is at work"):
        begin_job(ledger, job("two"), ALL, 60)
    begin_job(ledger, job("three", pair="c d"), ALL, 60)
    clock.now += 61_000_000
    begin_job(ledger, job("two", owner="host/2/2"), ALL, 60)
    assert find_job(ledger, "one").state == "STOPPED"
    with pytest.raises(ConditionNotMatch, match="taken over"):
        note_progress(ledger, first, Progress(spans=[], totals={}))
    assert not renew_job(ledger, first, 60)


def test_resume_is_won_once(ledger: Ledger, clock: Clock) -> None:
    """Of many who resume a dead job at once exactly one gets it."""
    begin_job(ledger, job(), ALL, 60)
    with pytest.raises(ConditionNotMatch, match="at work"):
        take_job(ledger, "one", "host/2/2", 60)
    clock.now += 61_000_000
    won: list[Job] = []
    lost: list[ConditionNotMatch] = []

    def resume(number: int) -> None:
        try:
            won.append(take_job(ledger, "one", f"host/{number}/2", 60))
        except ConditionNotMatch as error:
            lost.append(error)

    threads = [threading.Thread(target=resume, args=(number,)) for number in range(2, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(won) == 1
    assert len(lost) == 3
    assert find_job(ledger, "one").owner == won[0].owner


def test_two_that_begin_at_once(ledger: Ledger) -> None:
    """Of many that begin on the same trees at once exactly one holds them."""
    outcomes: list[str] = []

    def begin(number: int) -> None:
        try:
            begin_job(ledger, job(f"job-{number}", owner=f"host/{number}/1"), ALL, 60)
            outcomes.append("begun")
        except ConditionNotMatch:
            outcomes.append("refused")

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(outcomes) == ["begun", "refused", "refused", "refused"]


def test_progress(ledger: Ledger) -> None:
    """Ranges, totals, failures and the report's length are noted together, bytes for bytes."""
    begun = begin_job(ledger, job(), ALL, 60)
    spans = [Span(b"", b"m\xff"), Span("ü\U0010ffff".encode()), Span(b"", None, 1)]
    failures = [Failure(b"x", "NotFound", "gone"), Failure(b"\xff", "Unexpected")]
    note_progress(
        ledger,
        begun,
        Progress(spans=spans, totals={"n": 1}, report_size=9, failures=failures, phase="delete"),
    )
    again = [Failure(b"x", "RateLimited", "slow")]
    note_progress(ledger, begun, Progress(spans=spans, totals={"n": 2}, failures=again))
    found = find_job(ledger, "one")
    assert (found.totals, found.report_size, found.phase) == ({"n": 2}, 9, "copy")
    assert spans_of(ledger, "one") == spans
    assert failures_of(ledger, "one") == [again[0], failures[1]]


def test_no_row_for_objects(ledger: Ledger) -> None:
    """Ten thousand notes leave as many rows as there are ranges."""
    begun = begin_job(ledger, job(), ALL, 60)
    for number in range(30):
        spans = [Span(f"{number}-{worker}".encode()) for worker in range(16)]
        note_progress(ledger, begun, Progress(spans=spans, totals={}))
    with ledger.read() as connection:
        for table, rows in ((jobs, 1), (job_ranges, 16), (job_failures, 0)):
            assert connection.execute(select(func.count()).select_from(table)).scalar() == rows


def test_checkpoints_of_copies(ledger: Ledger) -> None:
    """A checkpoint replaces the older one, and goes when the copy or the job is over."""
    begun = begin_job(ledger, job(), ALL, 60)
    keep_copy(ledger, begun, 0, b"big", "one")
    keep_copy(ledger, begun, 0, b"big", "two")
    keep_copy(ledger, begun, 0, b"huge", "three")
    assert copies_of(ledger, "one") == {(0, b"big"): "two", (0, b"huge"): "three"}
    note_progress(ledger, begun, Progress(spans=(), totals={}, ended_copies=[(0, b"big")]))
    assert copies_of(ledger, "one") == {(0, b"huge"): "three"}
    end_job(ledger, begun, "DONE")
    assert copies_of(ledger, "one") == {}
    with pytest.raises(ConditionNotMatch):
        keep_copy(ledger, begun, 0, b"late", "x")


def test_ends(ledger: Ledger) -> None:
    """A stopped job can be taken and found again, one that is over cannot."""
    begun = begin_job(ledger, job(), ALL, 60)
    assert find_unfinished(ledger, "a b") == begun
    end_job(ledger, begun, "STOPPED", "Ctrl-C")
    stopped = find_unfinished(ledger, "a b")
    assert stopped is not None
    assert (stopped.state, stopped.message) == ("STOPPED", "Ctrl-C")
    taken = take_job(ledger, "one", "host/2/2", 60)
    end_job(ledger, taken, "PARTLY")
    assert find_unfinished(ledger, "a b") is None
    with pytest.raises(ConditionNotMatch, match="is over"):
        take_job(ledger, "one", "host/3/3", 60)


def test_resume_while_another_is_at_the_same_trees(ledger: Ledger) -> None:
    """A stopped job waits while a newer one holds its trees."""
    begun = begin_job(ledger, job("old"), ALL, 60)
    end_job(ledger, begun, "STOPPED")
    begin_job(ledger, job("new"), ALL, 60)
    with pytest.raises(ConditionNotMatch, match="job new"):
        take_job(ledger, "old", "host/2/2", 60)


def test_remove_and_expire(ledger: Ledger, clock: Clock) -> None:
    """A job under way is not removed; one of thirty days ago is forgotten with all its rows."""
    begun = begin_job(ledger, job(), ALL, 60)
    note_progress(ledger, begun, Progress(spans=ALL, totals={}, failures=[Failure(b"x", "E")]))
    with pytest.raises(ConditionNotMatch):
        remove_job(ledger, "one")
    end_job(ledger, begun, "STOPPED")
    remove_job(ledger, "one")
    assert list_jobs(ledger) == []
    assert failures_of(ledger, "one") == []
    begin_job(ledger, job("two"), ALL, 60)
    assert expire_jobs(ledger) == 0
    clock.now += 31 * DAY
    assert expire_jobs(ledger) == 1
    assert list_jobs(ledger) == []
