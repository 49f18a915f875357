"""Spans of OpenTelemetry: what is told of a load, a tree, a copy and its requests.

Each program runs in a process of its own: once the SDK is imported, a process is traced.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.command import run_command_text

pytestmark = pytest.mark.skipif(
    find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None,
    reason="the extra otel is not installed",
)

MIB = 1024 * 1024
Span = dict[str, Any]
BEFORE = """
import json, os
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
kept = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(kept))
trace.set_tracer_provider(provider)
"""
AFTER = """
print(json.dumps([json.loads(each.to_json()) for each in kept.get_finished_spans()]))
"""


def spans_of(program: str, folder: Path) -> list[Span]:
    """The spans that a program makes, in the order of their ends."""
    done = subprocess.run(
        [sys.executable, "-c", BEFORE + program + AFTER],
        cwd=folder,
        env={**os.environ, "XDG_STATE_HOME": str(folder / "state")},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    found: list[Span] = json.loads(done.stdout)
    return found


def one(spans: list[Span], name: str) -> Span:
    (found,) = (each for each in spans if each["name"] == f"calque.{name}")
    return found


def is_below(spans: list[Span], span: Span, above: Span) -> bool:
    """Whether one lies in the other, however deep."""
    by_id = {each["context"]["span_id"]: each for each in spans}
    while span["parent_id"] is not None:
        if span["parent_id"] == above["context"]["span_id"]:
            return True
        span = by_id[span["parent_id"]]
    return False


def test_a_load_tells_its_phases(tmp_path: Path) -> None:
    """Opened, listed, claimed, written, prepared, committed; all within the load."""
    (tmp_path / "stage").mkdir()
    (tmp_path / "stage" / "a.csv").write_text("id\n1\n")
    spans = spans_of("import calque\ncalque.load('stage', into='./t')", tmp_path)
    load = one(spans, "load")
    for phase in ("open", "claim", "write", "prepare", "commit"):
        assert is_below(spans, one(spans, f"load.{phase}"), load), phase
    assert [each for each in spans if each["name"] == "calque.load.list"]
    assert one(spans, "load.write")["attributes"]["calque.files"] == 1


def test_a_tree_tells_its_large_copies_and_requests(tmp_path: Path) -> None:
    """Threads of the run included: what they do lies within it; names may be any bytes."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "big").write_bytes(bytes(9 * MIB))
    (source / os.fsdecode(b"caf\xe9")).write_bytes(b"1")
    spans = spans_of("import calque\ncalque.sync_tree('source/', 'target')", tmp_path)
    tree, copy = one(spans, "tree"), one(spans, "copy")
    assert tree["attributes"]["calque.kind"] == "sync"
    assert copy["attributes"]["calque.path"] == "big"
    assert copy["attributes"]["calque.bytes"] == 9 * MIB
    assert is_below(spans, copy, tree)
    requests = [each for each in spans if each["name"].startswith("calque.request.")]
    assert any(is_below(spans, each, copy) for each in requests)
    assert all(is_below(spans, each, tree) for each in requests if "caf" in str(each))


def test_an_error_is_noted_in_its_span(tmp_path: Path) -> None:
    """The request that failed, and how."""
    program = """
from calque.errors import NotFound
from calque.operator import Operator
try:
    Operator.from_uri("file://" + os.getcwd()).stat("missing")
except NotFound:
    pass
"""
    (failed,) = spans_of(program, tmp_path)
    assert failed["status"]["status_code"] == "ERROR"
    assert failed["events"][0]["attributes"]["exception.type"] == "calque.errors.NotFound"


def test_without_the_sdk_nothing_is_imported() -> None:
    """One look, and the same empty block every time; layers are as they were."""
    code = (
        "import sys\nfrom calque import tracing\n"
        "assert tracing.span('a') is tracing.span('b', path='x')\n"
        "assert tracing.enter_here() is None and tracing.carry(print) is print\n"
        "from calque.operator.layers import default_layers\n"
        "assert 'Tracing' not in str(default_layers())\n"
        "assert not any(name.startswith('opentelemetry') for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=150)


def test_a_command_is_traced_by_its_environment(tmp_path: Path) -> None:
    """The span of the command holds the others, below whoever called it; results stay clean."""
    (tmp_path / "a").write_bytes(b"1")
    parent = f"00-{'a' * 32}-{'b' * 16}-01"
    environment = {**os.environ, "OTEL_TRACES_EXPORTER": "console", "TRACEPARENT": parent}
    done = run_command_text("cp", "a", "b", "--json", cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["bytes"] == 1
    assert '"calque.cp"' in done.stderr
    assert '"calque.copy"' in done.stderr
    assert "a" * 32 in done.stderr
    for quiet in ({"OTEL_TRACES_EXPORTER": "none"}, {"OTEL_SDK_DISABLED": "true"}):
        done = run_command_text("stat", "a", cwd=tmp_path, env={**environment, **quiet})
        assert "calque.stat" not in done.stderr
    unknown = {**environment, "OTEL_TRACES_EXPORTER": "zipkin"}
    done = run_command_text("stat", "a", cwd=tmp_path, env=unknown)
    assert (done.returncode, "'zipkin'" in done.stderr) == (0, True)


def test_a_collector_is_sent_the_spans(tmp_path: Path) -> None:
    """By OTLP to a real server: the command, its copy, the name of the service; a collector that
    is away delays nothing for long, and changes no exit code."""
    (tmp_path / "a").write_bytes(b"1")
    sent: list[bytes] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            body = self.rfile.read(int(self.headers["Content-Length"]))
            sent.append(gzip.decompress(body) if self.headers["Content-Encoding"] else body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    environment = {**os.environ, "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}
    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{server.server_port}"
        done = run_command_text("cp", "a", "b", cwd=tmp_path, env=environment)
        server.shutdown()
    assert done.returncode == 0, done.stderr
    messages = import_module("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    request = messages.ExportTraceServiceRequest()
    for each in sent:
        request.MergeFromString(each)
    resources = [each.resource for each in request.resource_spans]
    names = {
        span.name
        for each in request.resource_spans
        for scope in each.scope_spans
        for span in scope.spans
    }
    assert {"calque.cp", "calque.copy"} <= names
    assert any(
        pair.key == "service.name" and pair.value.string_value == "calque"
        for resource in resources
        for pair in resource.attributes
    )
    away = {**environment, "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    done = run_command_text("cp", "a", "c", cwd=tmp_path, env=away)
    assert done.returncode == 0
    assert (tmp_path / "c").read_bytes() == b"1"
