"""A run in a process of its own, which notes its progress often and may be told to die."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from tests.program import Program

_SCRIPT = """
import json, sys
from calque.transfer.jobs import journal
from calque.transfer.run import lister
from calque.transfer.run.copies import copy_keeper
journal._NOTE_SECONDS = 0.01
copy_keeper._KEEP_SECONDS = 0.0
lister._PAGE = 20
from calque.transfer.api import PreparedRun
from calque.transfer.prepared_removal import PreparedRemoval
from calque.transfer.request.keywords import options_from
from calque.transfer.request.tree_request import TreeRequest
told = json.loads(sys.argv[1])
request = TreeRequest(
    kind=told["kind"],
    sources=told["sources"],
    target=told["target"],
    options=options_from(told["kind"], told["options"]),
    report=told["report"],
    source_options=told["source_options"],
    target_options=told["target_options"],
)
prepared = PreparedRemoval(request) if request.kind == "rm" else PreparedRun(request)
print(json.dumps(prepared.run().to_json()))
"""


class Child:
    """Runs the same request again and again, each time in a new process."""

    def __init__(
        self,
        state: Path,
        source: str | list[str],
        target: str,
        *,
        kind: str = "cp",
        report: Path | None = None,
        environment: dict[str, str] | None = None,
        service: dict[str, object] | None = None,
        **options: object,
    ) -> None:
        self._environment = {**os.environ, **(environment or {}), "XDG_STATE_HOME": str(state)}
        sources = [source] if isinstance(source, str) else source
        remote = ["://" in each for each in (sources[0], target)]
        self._told = {
            "kind": kind,
            "sources": sources,
            "target": target,
            "options": options,
            "report": None if report is None else str(report),
            "source_options": (service or {}) if remote[0] else {},
            "target_options": (service or {}) if remote[1] else {},
        }

    def spawn(self, fault: str = "", **more: object) -> Program:
        """Start it; with a fault (``step@visit:kill``) it dies there."""
        told = {**self._told, "options": {**self._told["options"], **more}}  # type: ignore[dict-item]
        return Program(_SCRIPT, json.dumps(told), env={**self._environment, "CALQUE_FAULT": fault})

    def run(self, fault: str = "", **more: object) -> subprocess.CompletedProcess[str]:
        """Start it and wait for its end."""
        with self.spawn(fault, **more) as process:
            told, errors = process.communicate()
        return subprocess.CompletedProcess(process.args, process.wait(), told, errors)

    def finish(self) -> dict[str, object]:
        """Run it to its end; its report."""
        done = self.run()
        assert done.returncode == 0, done.stderr
        found: dict[str, object] = json.loads(done.stdout)
        return found
