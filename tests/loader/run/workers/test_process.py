"""A worker process: its results, its errors and its end reach the one that started it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from calque.errors import NotFound
from calque.loader.run.workers.process import WorkerCrashed, WorkerDied, WorkerProcess

Start = Callable[[Callable[..., Any]], WorkerProcess[Any]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts processes, and ends them after the test."""
    started: list[WorkerProcess[Any]] = []

    def run(work: Callable[..., Any]) -> WorkerProcess[Any]:
        started.append(WorkerProcess(work))
        return started[-1]

    yield run
    for process in started:
        process.stop()


def answer(number: int) -> int:
    print("what is printed is no reply")
    if number < 0:
        raise NotFound("no such number", hint="Count up.")
    return number + 1


def nested(levels: int) -> pa.DataType:
    kind = pa.int64()
    for _ in range(levels):
        kind = pa.list_(kind)
    return kind


def end(by: int) -> None:
    os.kill(os.getpid(), by)


def test_results_and_errors(start: Start) -> None:
    """Calls are answered one after the other; an error is raised as it was, and ends nothing."""
    process = start(answer)
    assert process.run(1, about="a test") == 2
    with pytest.raises(NotFound, match="no such number") as caught:
        process.run(-1, about="a test")
    assert caught.value.hint == "Count up."
    assert process.run(2, about="a test") == 3


def test_a_result_that_cannot_travel(start: Start) -> None:
    """It is an error of that call alone: the next one is answered."""
    process = start(nested)
    with pytest.raises(RecursionError):
        process.run(2000, about="a test")
    assert process.run(1, about="a test") == pa.list_(pa.int64())


@pytest.mark.parametrize("by", [signal.SIGSEGV, signal.SIGABRT])
def test_a_crash_is_told_from_an_end(start: Start, by: int) -> None:
    """Native code that crashes speaks against the file; a process that was killed does not."""
    with pytest.raises(WorkerCrashed, match="in a test"):
        start(end).run(by, about="a test")
    with pytest.raises(WorkerDied) as caught:
        start(end).run(signal.SIGKILL, about="a test")
    assert not isinstance(caught.value, WorkerCrashed)
    assert caught.value.retryable


def test_what_is_printed_before_its_first_line(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interpreter that greets when it starts spoils no reply."""
    (tmp_path / "sitecustomize.py").write_text("print('hello', flush=True)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert start(answer).run(1, about="a test") == 2


@pytest.mark.parametrize("answers", [0, 1])
def test_killed_between_two_calls(start: Start, answers: int) -> None:
    """The next call tells it, the very first one too; then it can still be stopped, also twice."""
    process = start(answer)
    for number in range(answers):
        process.run(number, about="a test")
    os.kill(process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(WorkerDied, match="in the next"):
        process.run(1, about="the next")
    process.stop()
    process.stop()
