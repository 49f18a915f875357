"""A server looks after its store: each service in its time, whatever happens to another."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Callable

import pytest

from calque.errors import FailedPrecondition, Unavailable
from calque.store.embedded import EmbeddedStore
from calque.store.metabase.engine.database import Database
from calque.store.metabase.objects.hold_pieces import HeldPieces, Hold
from calque.store.metabase.upkeep import lease as lease_module
from calque.store.metabase.upkeep.last_runs import last_run
from calque.store.metabase.upkeep.lease import LEASE_US, held_leases, hold_lease
from calque.store.serve import serve_metrics, serve_store
from calque.store.upkeep.timers import TIMERS, Timer, Timers
from tests.store.upkeep.kept_store import KeptStore
from tests.store.world import Clock

NAMED = (
    "scan_rows", "scan_seconds", "scan_snapshot_age_seconds", "gc_pieces_trashed_total",
    "gc_filter_bytes", 'audit_results_total{result="good"}', "repair_queue", "segments_lost",
    'segments_by_health{health="whole"}', "logical_bytes", "physical_bytes", "saved_bytes",
)  # fmt: skip


def test_everything_runs_and_is_measured(plain: KeptStore) -> None:
    """All services, once due; the numbers stand on the Prometheus endpoint, without names."""
    plain.upload("a")
    plain.copy("a", "b")
    done = threading.Event()
    quick = [Timer(each.service, 0.01, each.run) for each in TIMERS]
    last = Timer("last", 0.01, lambda *_: done.set())
    with serve_store(plain.store, timers=[*quick, last]), serve_metrics(plain.store, 0) as url:
        assert done.wait(120)
        with urllib.request.urlopen(url) as answer:
            text = answer.read().decode()
    for name in NAMED:
        assert f"\n{name} " in text, name
    numbers = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert float(numbers["scan_rows"]) == 6
    assert float(numbers["logical_bytes"]) == 2 * float(numbers["saved_bytes"]) > 5000
    assert float(numbers['segments_by_health{health="whole"}']) > 0
    assert not [line for line in numbers if "upkeep_failures_total{" in line]
    assert "photos" not in text
    plain.check()


@pytest.mark.parametrize("error", [ZeroDivisionError(), Unavailable("x"), FailedPrecondition("x")])
def test_a_failed_run_is_not_the_last(plain: KeptStore, error: Exception) -> None:
    """Whatever goes wrong in one run, the next one comes, and the others come too."""
    runs, others = threading.Semaphore(0), threading.Semaphore(0)

    def fail(*_: object) -> None:
        runs.release()
        raise error

    timers = [Timer("bad", 0.01, fail), Timer("good", 0.01, lambda *_: others.release())]
    with serve_store(plain.store, timers=timers):
        for _ in range(3):
            assert runs.acquire(timeout=30)
            assert others.acquire(timeout=30)


def test_a_server_that_is_started_anew_remembers(plain: KeptStore) -> None:
    """What ran an hour ago in another process is not due after a restart; after a day it is."""
    ran: list[int] = []
    timer = Timer("daily", 86_400, lambda *_: ran.append(1))

    def start_and_look() -> None:
        timers = Timers(plain.store, threading.Event(), [timer])
        timers._run_if_due(timer)
        timers.close()

    start_and_look()
    assert ran == []  # a new server waits, so that restarts do not start everything at once
    running = Timers(plain.store, threading.Event(), [timer])
    plain.pass_days(1.01)
    running._run_if_due(timer)
    running._run_if_due(timer)
    running.close()
    assert ran == [1]
    start_and_look()
    plain.pass_days(1.01)
    start_and_look()
    assert ran == [1, 1]
    assert last_run(plain.store.endpoint.database, "timer daily") is not None


def test_a_clock_that_was_put_back_stops_nothing(plain: KeptStore) -> None:
    """What ran tomorrow, by a clock that was wrong, is due as ever; once, and then in its time."""
    ran: list[int] = []
    timer = Timer("daily", 86_400, lambda *_: ran.append(1))
    running = Timers(plain.store, threading.Event(), [timer])
    plain.pass_days(1000)
    running._run_if_due(timer)
    plain.pass_days(-900)
    running._run_if_due(timer)
    running._run_if_due(timer)
    assert ran == [1, 1]
    plain.pass_days(1.01)
    running._run_if_due(timer)
    assert ran == [1, 1, 1]
    running.close()


def test_who_was_killed_before_the_clock_was_put_back_holds_nothing(plain: KeptStore) -> None:
    """Neither a service nor, by a backup, the pieces: else both would wait for years."""
    database = plain.store.endpoint.database
    plain.pass_days(1000)
    lease_module.Lease(database, "gc").take()
    hold = Hold(database)
    hold.refresh()
    assert held_leases(database) == {"gc"}
    assert HeldPieces(database)
    plain.pass_days(-1000)
    assert held_leases(database) == frozenset()
    assert not HeldPieces(database)
    with hold_lease(database, "gc") as lease:
        lease.require()
    Hold(database).refresh()


def test_a_lease_is_one_processs(database: Database, clock: Clock) -> None:
    """Until it ends or runs out; whoever lost it is told."""
    with hold_lease(database, "gc") as lease:
        with pytest.raises(FailedPrecondition, match="under way"), hold_lease(database, "gc"):
            pass
        with hold_lease(database, "tally"):
            lease.require()
        clock.advance(LEASE_US + 1)
        with (
            hold_lease(database, "gc"),
            pytest.raises(FailedPrecondition, match="under way"),
        ):
            lease.take()
        lease.take()
    with hold_lease(database, "gc"):
        pass


def test_a_lost_lease_is_noticed(
    database: Database, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that was paused too long stops before it does anything more."""
    monkeypatch.setattr(lease_module, "REFRESH_S", 0.01)
    with hold_lease(database, "repair") as lease:
        clock.advance(LEASE_US + 1)
        # The other one takes it in the same moment, before this one has put it off.
        other = lease_module.Lease(database, "repair")
        while True:
            try:
                other.take()
                break
            except FailedPrecondition:
                clock.advance(LEASE_US + 1)
        with pytest.raises(FailedPrecondition, match="paused too long"):
            _wait_until_lost(lease)
        other.end()


def test_who_was_stopped_has_no_lease_when_it_goes_on(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked before its lease can be put off; another may have had it, and ended it."""
    lease = lease_module.Lease(database, "gc")
    lease.take()
    lease.require()
    monkeypatch.setattr(lease_module, "LEASE_US", -1)  # its time is over, by its own clock
    with pytest.raises(FailedPrecondition, match="paused too long"):
        lease.require()
    monkeypatch.setattr(lease_module, "REFRESH_S", 0.0)
    lease.keep()
    monkeypatch.setattr(lease_module, "LEASE_US", LEASE_US)
    with pytest.raises(FailedPrecondition, match="paused too long"):
        lease.require()


def _wait_until_lost(lease: lease_module.Lease) -> None:
    pause = threading.Event()
    for _ in range(3000):
        lease.require()
        pause.wait(0.01)


def test_two_servers_of_one_store_do_no_harm(
    make_store: Callable[..., KeptStore], any_database: str | None
) -> None:
    """Both run everything at once; nothing is lost."""
    kept = make_store(nodes=6, database=any_database)
    for number in range(3):
        kept.upload(f"o{number}")
    kept.lay_garbage(2)
    kept.pass_days(4)
    second = EmbeddedStore.open(kept.store.folder, clock=kept.clock)
    rounds = threading.Semaphore(0)
    quick = [
        *(Timer(each.service, 0.01, each.run) for each in TIMERS if each.service != "fsck"),
        Timer("last", 0.01, lambda *_: rounds.release()),
    ]
    with serve_store(kept.store, timers=quick), serve_store(second, timers=quick):
        for _ in range(6):
            assert rounds.acquire(timeout=120)
    second.close()
    kept.read_all()
