"""What one run of a load or over trees counts, and who is told: a port, a file, a pushgateway.

Every number carries the name of its run and nothing that users named: no table, bucket or path. The
moment of the last success outlives runs that fail, in the file and at the gateway, so that an alarm
can be set on its age.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit, urlunsplit

import typer
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    disable_created_metrics,
    start_http_server,
)
from prometheus_client.exposition import (
    basic_auth_handler,
    default_handler,
    pushadd_to_gateway,
    write_to_textfile,
)
from prometheus_client.parser import text_string_to_metric_families

from calque.cli.flags.metrics_flags import MetricsWanted
from calque.cli.output import FAILED, code_of, say
from calque.config import mask_url
from calque.errors import CalqueError, ConfigInvalid
from calque.ticker import call_every

if TYPE_CHECKING:
    from calque.loader.model.load_progress import LoadProgress
    from calque.loader.report import Report as LoadReport
    from calque.transfer.report.progress import TreeProgress
    from calque.transfer.report.report import Report as TreeReport

EVERY = 15.0
"""Seconds between two tellings of a run that goes on."""
_PUSH_SECONDS = 10.0
_INTERRUPTED = 130
_SUCCESS = "calque_run_success_timestamp_seconds"


class RunMetrics:
    """The numbers of one run. Safe between threads."""

    def __init__(self, name: str) -> None:
        self.registry = CollectorRegistry()
        self.name = name
        self.code = 0
        """What the run ends with, unless an error says otherwise."""
        self.gauge("run_start_timestamp_seconds", "When the run began").set(time.time())
        self._success: Gauge | None = None
        self._load: _LoadNumbers | None = None

    def end(self, code: int) -> None:
        """Note how the run ended."""
        self.gauge("run_end_timestamp_seconds", "When the run ended").set(time.time())
        self.gauge("run_exit_code", "What the command ended with; 0 is done").set(code)
        if code == 0:
            self.note_success(time.time())

    def note_success(self, when: float) -> None:
        """When a run of this name was last good: this one, or one before it."""
        if self._success is None:
            about = "When a run of this name last ended well"
            self._success = self.gauge("run_success_timestamp_seconds", about)
        self._success.set(when)

    def watch_tree(self, progress: TreeProgress) -> None:
        """Tell how far a run over trees is whenever somebody asks."""
        self.gauge("tree_listed_objects", "Objects of the source listed so far").set_function(
            lambda: progress.listed
        )
        self.gauge("tree_ended_copies", "Copies that ended, well or not").set_function(
            lambda: progress.ended
        )
        self.gauge("tree_moved_bytes", "Bytes copied so far").set_function(
            lambda: progress.bytes_moved
        )
        self.gauge("tree_expected_bytes", "Bytes to copy, as far as is known").set_function(
            lambda: progress.bytes_to_copy
        )

    def count_tree(self, report: TreeReport) -> None:
        """Count what a run over trees did, by outcome."""
        objects = self.gauge("tree_objects", "Objects by what became of them", "outcome")
        size = self.gauge("tree_bytes", "Bytes by what became of them", "outcome")
        for outcome, sums in report.totals.by_outcome.items():
            objects.labels(self.name, outcome).set(sums.objects)
            size.labels(self.name, outcome).set(sums.bytes)
        self.gauge("tree_requests", "Requests that were sent").set(report.totals.requests)
        self.code = report.exit_code

    def load_progress(self, done: LoadProgress) -> None:
        """Note how far a load is."""
        self._loads().note_progress(done)

    def count_load(self, report: LoadReport | None, code: int) -> None:
        """Add what one load did, and what it would end the command with; a watch makes many."""
        self._loads().add(report, failed=code == FAILED)
        if code == 0:
            self.note_success(time.time())

    def _loads(self) -> _LoadNumbers:
        if self._load is None:
            self._load = _LoadNumbers(self)
        return self._load

    def gauge(self, name: str, about: str, *labels: str) -> Gauge:
        """A number that goes up and down."""
        made = Gauge(f"calque_{name}", about, ("run", *labels), registry=self.registry)
        return made if labels else made.labels(self.name)

    def counter(self, name: str, about: str, *labels: str) -> Counter:
        """A number that only grows."""
        made = Counter(f"calque_{name}", about, ("run", *labels), registry=self.registry)
        return made if labels else made.labels(self.name)


class _LoadNumbers:
    """Of loads: sums over all cycles of a watch, and how far the one at work is."""

    def __init__(self, of: RunMetrics) -> None:
        self._name = of.name
        self._cycles = of.counter("load_cycles", "Loads that ended, well or not")
        self._failures = of.counter("load_failures", "Loads that were given up")
        self._rows = of.counter("load_rows", "Rows that are in the table")
        self._rejected = of.counter("load_rejected_rows", "Rows that were rejected")
        self._bytes = of.counter("load_bytes", "Bytes of the files that were loaded")
        self._files = of.counter("load_files", "Files by what became of them", "status")
        self._done = of.gauge("load_progress_bytes", "Bytes read by the load at work")
        self._expected = of.gauge("load_expected_bytes", "Bytes the load at work has to read")

    def note_progress(self, done: LoadProgress) -> None:
        self._done.set(done.bytes)
        self._expected.set(done.bytes_total)

    def add(self, report: LoadReport | None, *, failed: bool) -> None:
        self._cycles.inc()
        self._failures.inc(failed)
        if report is None:
            return
        self._rows.inc(report.rows_loaded)
        self._bytes.inc(report.bytes_loaded)
        self._rejected.inc(report.files.errors)
        for status, count in report.files.counts.items():
            self._files.labels(self._name, str(status).lower()).inc(count)


@contextmanager
def run_metrics(wanted: MetricsWanted, command: str) -> Iterator[RunMetrics]:
    """Count for the length of a ``with`` block, and tell whoever was named, however it ends."""
    # When a counter was made is when the run began.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    metrics = RunMetrics(wanted.name or command)
    with ExitStack() as stack:
        if wanted.port is not None:
            stack.enter_context(_answered(metrics.registry, wanted.port))
        tell = _Teller(metrics, wanted)
        stack.callback(tell)  # once more when all is known
        stack.enter_context(call_every(tell, EVERY))
        code = 1
        try:
            yield metrics
            code = metrics.code
        except typer.Exit as stop:
            code = stop.exit_code
            raise
        except KeyboardInterrupt:
            code = _INTERRUPTED
            raise
        except CalqueError as error:
            code = code_of(error)
            raise
        finally:
            metrics.end(code)


@contextmanager
def _answered(registry: CollectorRegistry, port: int) -> Iterator[None]:
    try:
        server, thread = start_http_server(port, "127.0.0.1", registry)
    except OSError as error:
        raise ConfigInvalid(
            f"cannot listen at 127.0.0.1:{port} for metrics: {error.strerror}",
            hint="Choose another --metrics-port; 0 takes a free one.",
        ) from error
    say(f"metrics at http://127.0.0.1:{server.server_port}/metrics")
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Teller:
    """Writes the file and pushes. What goes wrong is said once and spoils no run."""

    def __init__(self, metrics: RunMetrics, wanted: MetricsWanted) -> None:
        self._metrics = metrics
        self._file, self._push = wanted.file, wanted.push
        self._said: set[str] = set()
        if self._file is not None:
            before = _last_success(self._file, metrics.name)
            if before is not None:
                metrics.note_success(before)

    def __call__(self) -> None:
        try:
            if self._file is not None:
                write_to_textfile(os.fspath(self._file), self._metrics.registry)
        except OSError as error:
            self._say(f"metrics could not be written to {self._file}: {error.strerror}")
        try:
            if self._push is not None:
                push(self._push, self._metrics)
        except (OSError, ValueError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            self._say(f"metrics could not be pushed to {mask_url(self._push or '')}: {reason}")

    def _say(self, line: str) -> None:
        if line not in self._said:
            self._said.add(line)
            say(f"warning: {line}")


def push(url: str, metrics: RunMetrics) -> None:
    """Send the numbers to a pushgateway. Others of the same name stay: the last success does."""
    parts = urlsplit(url)
    handler = default_handler
    if parts.username is not None:
        user, password = unquote(parts.username), unquote(parts.password or "")
        parts = parts._replace(netloc=parts.netloc.rpartition("@")[2])

        def handler(url, method, timeout, headers, data):  # type: ignore[no-untyped-def]
            return basic_auth_handler(url, method, timeout, headers, data, user, password)

    pushadd_to_gateway(
        urlunsplit(parts).rstrip("/"),
        job=metrics.name,
        registry=metrics.registry,
        timeout=_PUSH_SECONDS,
        handler=handler,
    )


def _last_success(file: Path, name: str) -> float | None:
    """What an earlier run of this name has left in the file."""
    try:
        text = file.read_text(encoding="utf-8")
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name == _SUCCESS and sample.labels.get("run") == name:
                    return float(sample.value)
    except (OSError, ValueError):  # there is none, or it is not ours to read
        return None
    return None
