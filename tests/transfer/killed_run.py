"""A run in a process of its own, which notes its progress often and may be told to die."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

from calque import faults
from calque.transfer.api import PreparedRun
from calque.transfer.jobs import journal
from calque.transfer.prepared_removal import PreparedRemoval
from calque.transfer.request.keywords import options_from
from calque.transfer.request.tree_request import TreeRequest
from calque.transfer.run import copy_keeper, lister
from tests.forks import FORKS

PATIENCE = 200.0


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
        self._told: dict[str, Any] = {
            "kind": kind,
            "sources": sources,
            "target": target,
            "options": options,
            "report": None if report is None else str(report),
            "source_options": (service or {}) if remote[0] else {},
            "target_options": (service or {}) if remote[1] else {},
        }

    def spawn(self, fault: str = "", **more: object) -> subprocess.Popen[str]:
        """Start it; with a fault (``step@visit:kill``) it dies there."""
        return subprocess.Popen(
            [sys.executable, "-m", __name__, json.dumps(self._with(more))],
            env={**self._environment, "CALQUE_FAULT": fault},
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, fault: str = "", **more: object) -> subprocess.CompletedProcess[str]:
        """Start it and wait for its end. It is forked: that saves the second of its imports."""
        told = self._with(more)
        with tempfile.TemporaryDirectory(prefix="calque-child-") as folder:
            process = FORKS.Process(target=_work, args=(told, self._environment, fault, folder))
            process.start()
            process.join(PATIENCE)
            if process.exitcode is None:
                process.kill()
                process.join()
                raise AssertionError(f"{told} did not end")
            streams = Path(folder)
            # The fork server may lose a code; whoever ended by itself has written it down.
            ended = streams / "code"
            code = int(ended.read_text()) if ended.exists() else process.exitcode
            out, err = ((streams / name).read_text() for name in ("stdout", "stderr"))
        return subprocess.CompletedProcess([json.dumps(told)], code, out, err)

    def finish(self) -> dict[str, object]:
        """Run it to its end; its report."""
        done = self.run()
        assert done.returncode == 0, done.stderr
        found: dict[str, object] = json.loads(done.stdout)
        return found

    def _with(self, more: dict[str, object]) -> dict[str, Any]:
        return {**self._told, "options": {**self._told["options"], **more}}


def _work(told: dict[str, Any], environment: dict[str, str], fault: str, folder: str) -> None:
    os.environ.clear()
    os.environ.update(environment)
    streams, code = Path(folder), 0
    with open(streams / "stdout", "w") as out, open(streams / "stderr", "w") as err:
        faults.arm(fault)
        try:
            out.write(_run(told))
        except BaseException:
            traceback.print_exc(file=err)
            code = 1
    (streams / "code").write_text(str(code))


def _run(told: dict[str, Any]) -> str:
    """Run a request, with notes and pages as small as they can be; its report."""
    journal._NOTE_SECONDS = 0.01
    copy_keeper._KEEP_SECONDS = 0.0
    lister._PAGE = 20
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
    return json.dumps(prepared.run().to_json())


if __name__ == "__main__":
    print(_run(json.loads(sys.argv[1])))
