"""Upkeep in the console: what ran, what it found, started now; and nodes that are ill."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from calque.console.server import serve_console
from calque.console.site import Site
from calque.console.store_pages.section import store_section
from calque.store.embedded import EmbeddedStore
from calque.store.metabase.accounts.nodes import Nodes
from calque.store.metabase.upkeep.last_runs import KEPT_RUNS, last_run, note_run, past_runs
from calque.store.metabase.upkeep.lease import hold_lease
from calque.store.upkeep.timers import TIMERS
from tests.console.world import Visitor, World


def wait_for(visitor: Visitor, service: str) -> dict[str, object]:
    """The service once it does not run any more."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        told = visitor.json("/upkeep")["services"]
        found: dict[str, object] = next(each for each in told if each["service"] == service)
        if not found["running_since"]:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{service} did not end")


@pytest.mark.parametrize("service", [each.service for each in TIMERS])
def test_every_service_runs_when_it_is_asked_to(visitor: Visitor, service: str) -> None:
    """And its report is there afterwards, with its time and when it is due."""
    assert visitor.post(f"/upkeep/run?service={service}").status_code == 200
    done = wait_for(visitor, service)
    assert done["failure"] is None
    assert done["last_run"] is not None
    assert done["due"] is not None


def test_what_others_run_is_shown(visitor: Visitor, world: World) -> None:
    """A timer or a command, in whatever process: known by its lease."""
    with hold_lease(world.store.endpoint.database, "gc"):
        assert "gc" in running_now(visitor)
    assert "gc" not in running_now(visitor)


def running_now(visitor: Visitor) -> set[str]:
    services = visitor.json("/upkeep")["services"]
    return {each["service"] for each in services if each["running"]}


def test_what_a_run_found_is_shown(visitor: Visitor, world: World) -> None:
    """A tally becomes the figures of the overview, a repair the segments by health."""
    for service in ("tally", "repair"):
        visitor.post(f"/upkeep/run?service={service}")
        assert wait_for(visitor, service)["past"]
    told = visitor.json()["sections"]["store"]
    assert told["counted_at"] is not None
    assert told["logical_bytes"] > told["physical_bytes"] > 0
    assert told["saved_bytes"] >= 400_000
    upkeep = visitor.json("/upkeep")
    assert upkeep["by_health"]["whole"] >= 1
    assert [each["state"] for each in upkeep["nodes"]] == ["ok"] * len(world.store.nodes.direct())
    assert visitor.post("/upkeep/run?service=nonsense").status_code == 404


def test_a_node_that_is_ill_is_told_with_what_to_do(tmp_path: Path) -> None:
    """On the overview and on the page of upkeep."""
    store = EmbeddedStore.create(tmp_path / "data")
    try:
        site = Site([store_section(store, store.grant())])
        with serve_console(site) as served:
            visitor = Visitor(served)
            visitor.sign_in(site.sessions.token)
            nodes = Nodes(store.endpoint.database)
            nodes.set_state(nodes.all()[0].node_id, "silent")
            (problem,) = visitor.json()["sections"]["store"]["problems"]
            assert problem["what"] == "1 node not answering"
            assert problem["advice"].startswith("calque store repair ")
            assert visitor.json("/upkeep")["nodes"][0]["state"] == "silent"
    finally:
        store.close()


def test_the_last_ten_reports_are_kept(tmp_path: Path) -> None:
    """Newest first; the last is what it was; a run without a report is no report."""
    store = EmbeddedStore.create(tmp_path / "data")
    try:
        database = store.endpoint.database
        for number in range(KEPT_RUNS + 3):
            note_run(database, "tally", {"number": number})
        note_run(database, "timer tally", {})
        found = [each.report["number"] for each in past_runs(database, "tally")]
        assert found == [*range(KEPT_RUNS + 2, 2, -1)]
        last = last_run(database, "tally")
        assert last is not None
        assert last.report == {"number": KEPT_RUNS + 2}
        assert past_runs(database, "timer tally") == []
    finally:
        store.close()
