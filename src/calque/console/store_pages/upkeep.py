"""Upkeep: what each service found, started now if one wants; nodes, segments by health, repairs."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from prometheus_client import CollectorRegistry
from starlette.datastructures import FormData
from starlette.requests import Request

from calque.console.guard import BASE
from calque.console.page import Page
from calque.console.store_pages.commands import store_command
from calque.console.store_pages.figures import describe_service, fresh_nodes
from calque.console.text import moment
from calque.errors import CalqueError, ConditionNotMatch, NotFound
from calque.store.embedded import EmbeddedStore
from calque.store.metabase.accounts.nodes import NodeRecord
from calque.store.metabase.engine.database import Database
from calque.store.metabase.upkeep.last_runs import last_run, note_run, past_runs
from calque.store.metabase.upkeep.lease import held_leases
from calque.store.metabase.upkeep.repair_queue import count_repairs
from calque.store.upkeep.exit import exit_progress
from calque.store.upkeep.metrics import UpkeepMetrics
from calque.store.upkeep.timers import TIMERS, Timer, timer_key

ABOUT = {
    "nodes": "Asks every node whether it answers.",
    "expire": "Deletes what has expired and what was left by uploads that died.",
    "tally": "Counts objects and bytes, and what copies save.",
    "repair": "Finds segments with too few pieces and builds the missing ones anew.",
    "audit": "Asks nodes for pieces at random and checks what they answer.",
    "exit": "Goes on emptying nodes that were asked to leave.",
    "gc": "Removes pieces that no segment names.",
    "fsck": "Checks that everything in the database agrees.",
}

_log = logging.getLogger(__name__)


class UpkeepPages:
    """The page, and the runs that it was asked for, one after another."""

    def __init__(self, store: EmbeddedStore) -> None:
        self._store = store
        self._over = threading.Event()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="console-upkeep")
        self._lock = threading.Lock()
        self._running: dict[str, datetime] = {}
        self._failed: dict[str, str] = {}

    def show_upkeep(self, request: Request) -> Page:
        """Each service with its last ten reports; segments by health; the queue; the nodes."""
        database = self._store.endpoint.database
        repaired = last_run(database, "repair")
        running = self._at_work()
        data = {
            "services": [
                {**self._describe(timer), "running": timer.service in running} for timer in TIMERS
            ],
            "by_health": dict(repaired.report.get("by_health", {})) if repaired else {},
            "checked_at": moment(repaired.finished_at) if repaired else None,
            "repair_queue": count_repairs(database),
            "nodes": [
                {
                    "node": each.name,
                    "address": each.address,
                    "state": each.state,
                    "exit": _exit_of(database, each),
                    "since": moment(each.state_since or None),
                    "audits_good": each.audits_good,
                    "audits_wrong": each.audits_wrong,
                }
                for each in fresh_nodes(database)
            ],
        }
        command = store_command("repair", str(self._store.folder), "--dry-run")
        return Page("upkeep.html", "Upkeep", data, command)

    def run_now(self, request: Request, form: FormData) -> str:
        """Start a service beside its time; it is done when its report is there."""
        name = request.query_params.get("service", "")
        timer = next((each for each in TIMERS if each.service == name), None)
        if timer is None:
            raise NotFound(f"there is no service {name!r}")
        with self._lock:
            if name in self._running:
                raise ConditionNotMatch(f"{name} runs already", hint="Wait for its report.")
            self._running[name] = datetime.now(UTC)
        self._worker.submit(self._run, timer)
        return f"{BASE}/upkeep#{name}"

    def figures(self) -> dict[str, object]:
        """What is told live: of each service whether it runs, of each node its state, and how far
        it is with leaving."""
        database = self._store.endpoint.database
        running = self._at_work()
        told: dict[str, object] = {
            f"upkeep {timer.service}": "running" if timer.service in running else ""
            for timer in TIMERS
        }
        for each in fresh_nodes(database):
            told[f"node {each.name} state"] = each.state
            progress = _exit_of(database, each) or {"moved": "—", "left": "—"}
            told |= {f"node {each.name} {name}": value for name, value in progress.items()}
        return told

    def close(self) -> None:
        """Ask what runs to end, and wait for it."""
        self._over.set()
        self._worker.shutdown(wait=True, cancel_futures=True)

    def _at_work(self) -> set[str]:
        """The services that run: by this page, by a timer, or by a command anywhere."""
        held = held_leases(self._store.endpoint.database)
        return {*self._running, *(name.partition(" ")[0] for name in held)}

    def _describe(self, timer: Timer) -> dict[str, Any]:
        database, service = self._store.endpoint.database, timer.service
        return {
            **describe_service(database, timer),
            "running_since": self._running.get(service),
            "failure": self._failed.get(service),
            "past": [
                {"finished_at": moment(each.finished_at), "report": each.report}
                for each in past_runs(database, service)
            ],
            "about": ABOUT[service],
            "command": _command(service, str(self._store.folder)),
        }

    def _run(self, timer: Timer) -> None:
        # Numbers of its own: those of the server's timers count what the timers did.
        metrics = UpkeepMetrics(CollectorRegistry())
        failure = None
        try:
            timer.run(self._store, metrics, self._over.is_set)
            note_run(self._store.endpoint.database, timer_key(timer), {})
        except CalqueError as error:
            failure = str(error)
        except Exception as error:
            _log.exception("%s failed", timer.service)
            failure = f"a mistake of ours: {type(error).__name__}"
        with self._lock:
            self._running.pop(timer.service, None)
            self._failed.pop(timer.service, None)
            if failure is not None:
                self._failed[timer.service] = failure


def _exit_of(database: Database, node: NodeRecord) -> dict[str, Any] | None:
    """How far a node is with leaving, while it leaves."""
    progress = exit_progress(database, node) if node.state == "exiting" else None
    return progress._asdict() if progress else None


def _command(service: str, folder: str) -> str:
    if service == "nodes":  # a repair asks them first, and a dry one does no more
        return store_command("repair", folder, "--dry-run")
    if service == "exit":
        return store_command("exit", folder, "NODE")
    return store_command(service, folder)
