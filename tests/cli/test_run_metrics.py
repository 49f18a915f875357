"""Numbers of long runs for Prometheus: a file, a pushgateway, a port."""

from __future__ import annotations

import base64
import re
import signal
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from calque.cli import run_metrics
from tests.cli.conftest import Calque, Spawn
from tests.servers.process import free_ports

Numbers = dict[tuple[str, ...], float]
SUCCESS = "calque_run_success_timestamp_seconds"


def numbers_of(text: str) -> Numbers:
    """Samples by name and labels, as Prometheus reads them."""
    return {
        (sample.name, *sorted(sample.labels.values(), key=lambda it: it != sample.labels["run"])): (
            sample.value
        )
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def make_stage(folder: Path, name: str = "good.csv", rows: str = "1,10\n2,20\n") -> None:
    (folder / "stage").mkdir(exist_ok=True)
    (folder / "stage" / name).write_text(f"id,amount\n{rows}")


class Gateway:
    """A pushgateway as far as a push goes: what was sent, and how."""

    def __init__(self) -> None:
        self.pushes: list[tuple[str, str, str, dict[str, str]]] = []

    @contextmanager
    def served(self) -> Iterator[str]:
        pushes = self.pushes

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                pushes.append((self.command, self.path, body, dict(self.headers)))
                self.send_response(200)
                self.end_headers()

            do_PUT = do_POST  # noqa: N815

            def log_message(self, format: str, *args: object) -> None: ...

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()


def test_a_load_leaves_its_numbers_in_a_file(folder: Path, calque: Calque) -> None:
    """Rows, files, bytes, how it ended; a run that fails keeps the time of the last success."""
    make_stage(folder)
    words = ("load", "stage/", "--into", "./t", "--metrics-file", "run.prom", "--metrics-name", "n")
    assert calque(*words).returncode == 0
    told = numbers_of((folder / "run.prom").read_text())
    assert told["calque_load_rows_total", "n"] == 2
    assert told["calque_load_files_total", "n", "loaded"] == 1
    assert told["calque_load_bytes_total", "n"] > 0
    assert told["calque_run_exit_code", "n"] == 0
    assert told[SUCCESS, "n"] >= told["calque_run_start_timestamp_seconds", "n"]
    make_stage(folder, "bad.csv", "3,30\nx,y\n")
    assert calque(*words).returncode == 1
    again = numbers_of((folder / "run.prom").read_text())
    assert again["calque_run_exit_code", "n"] == 1
    assert again["calque_load_failures_total", "n"] == 1
    assert again[SUCCESS, "n"] == told[SUCCESS, "n"]
    assert again["calque_run_start_timestamp_seconds", "n"] > told[SUCCESS, "n"]
    assert calque(*words, "--on-error", "continue").returncode == 3
    partly = numbers_of((folder / "run.prom").read_text())
    assert partly[SUCCESS, "n"] == told[SUCCESS, "n"]
    assert partly["calque_load_rejected_rows_total", "n"] >= 1
    assert [each.name for each in folder.glob("run.prom*")] == ["run.prom"]


@pytest.mark.parametrize("words", [("sync",), ("cp", "-r"), ("mv", "-r")])
def test_a_tree_leaves_its_numbers_in_a_file(
    folder: Path, calque: Calque, words: tuple[str, ...]
) -> None:
    """Objects and bytes by what became of them; no path is told."""
    make_stage(folder)
    done = calque(*words, "stage/", "secret-place/", "--metrics-file", "run.prom")
    assert done.returncode == 0, done.stderr
    text = (folder / "run.prom").read_text()
    told = numbers_of(text)
    assert told["calque_tree_objects", words[0], "copied"] == 1
    assert told["calque_tree_bytes", words[0], "copied"] == len("id,amount\n1,10\n2,20\n")
    assert told["calque_tree_listed_objects", words[0]] == 1
    assert "secret-place" not in text
    assert "good.csv" not in text


def test_what_answers_a_push_is_no_http(folder: Path, calque: Calque) -> None:
    """Something else listens there: said once, and the run is what it is."""
    make_stage(folder)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        connection.recv(65536)
                        connection.sendall(b"SSH-2.0-nobody\r\n")

        threading.Thread(target=answer, daemon=True).start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        done = calque("sync", "stage/", "t/", "--metrics-push", url)
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("metrics could not be pushed") == 1


def test_numbers_are_pushed(folder: Path, calque: Calque) -> None:
    """Under the name of the run, so that what it does not tell stays; with a password by header."""
    make_stage(folder)
    gateway = Gateway()
    with gateway.served() as address:
        url = f"http://me:pa%40ss@{address}/"
        done = calque("sync", "stage/", "t/", "--metrics-push", url, "--metrics-name", "nightly")
    assert done.returncode == 0, done.stderr
    method, path, body, headers = gateway.pushes[-1]
    assert (method, path) == ("POST", "/metrics/job/nightly")
    assert headers["Authorization"] == "Basic " + base64.b64encode(b"me:pa@ss").decode()
    assert numbers_of(body)["calque_tree_objects", "nightly", "copied"] == 1
    assert "pa@ss" not in done.stderr + body


def test_a_gateway_that_is_away_spoils_nothing(folder: Path, calque: Calque) -> None:
    """The run is as good as it was; a warning says what is missing, without the password."""
    make_stage(folder)
    (port,) = free_ports(1)
    url = f"http://me:secret@127.0.0.1:{port}"
    done = calque("load", "stage/", "--into", "./t", "--metrics-push", url)
    assert done.returncode == 0
    assert done.stderr.count("metrics could not be pushed") == 1
    assert "secret" not in done.stderr


def test_a_watch_answers_prometheus(folder: Path, spawn: Spawn) -> None:
    """While it runs: cycles, rows, and the last success; the port is said."""
    make_stage(folder)
    words = ("load", "stage/", "--into", "./t", "--watch", "--every", "1s", "--metrics-port", "0")
    with spawn(*words) as process:
        try:
            assert process.stderr is not None
            said = next(line for line in process.stderr if "metrics at" in line)
            found = re.search(r"http://127\.0\.0\.1:\d+/metrics", said)
            assert found is not None
            told: Numbers = {}
            end = time.monotonic() + 120
            while not told.get(("calque_load_rows_total", "load")) and time.monotonic() < end:
                with urllib.request.urlopen(found[0], timeout=60) as answer:
                    told = numbers_of(answer.read().decode())
                time.sleep(0.1)
            assert told["calque_load_rows_total", "load"] == 2
            assert told["calque_load_cycles_total", "load"] >= 1
            assert told[SUCCESS, "load"] > 0
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=120)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--metrics-file", "nowhere/run.prom"), "is no folder"),
        (("--metrics-push", "gateway:9091"), "needs the URL"),
        (("--metrics-push", "file:///etc/passwd"), "needs the URL"),
        (("--metrics-name", ""), "1 to 100"),
        (("--metrics-name", "a\nb"), "1 to 100"),
    ],
)
def test_what_cannot_be_told_is_said_before_anything_is_done(
    folder: Path, calque_here: Calque, flags: tuple[str, ...], said: str
) -> None:
    """And nothing was copied."""
    make_stage(folder)
    done = calque_here("sync", "stage/", "t/", *flags)
    assert done.returncode != 0
    assert said in done.stderr
    assert not (folder / "t").exists()


def test_a_port_that_is_taken(folder: Path, calque_here: Calque) -> None:
    """It is said, and nothing was copied."""
    make_stage(folder)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = calque_here("sync", "stage/", "t/", "--metrics-port", port)
    assert done.returncode == 2
    assert "cannot listen" in done.stderr
    assert not (folder / "t").exists()


def test_one_object_has_no_numbers(folder: Path, calque_here: Calque) -> None:
    """It is refused, with what to do."""
    make_stage(folder)
    for verb in ("cp", "mv"):
        done = calque_here(verb, "stage/good.csv", "x", "--metrics-file", "run.prom")
        assert done.returncode == 1
        assert "--recursive" in done.stderr
    assert not (folder / "x").exists()


def test_the_page_of_the_docs_names_numbers_and_flags_that_there_are(calque: Calque) -> None:
    """Every number is one that a run tells, and none is left out; every flag is a flag."""
    page = (Path(__file__).parents[2] / "docs" / "watching.md").read_text(encoding="utf-8")
    source = Path(run_metrics.__file__).read_text(encoding="utf-8")
    made = {
        f"calque_{name}" + ("_total" if kind == "counter" else "")
        for kind, name in re.findall(r"(gauge|counter)\(\s*\"(\w+)\"", source)
    }
    assert set(re.findall(r"\bcalque_(?:run|load|tree)_\w+", page)) == made
    for command, rest in re.findall(r"^(?:\$ |OTEL\S+ )?calque (\w+)(.*)$", page, re.MULTILINE):
        told = calque(command, "--help").stdout
        for flag in re.findall(r"--[\w-]+", rest):
            assert flag in told, f"{command} {flag}"
