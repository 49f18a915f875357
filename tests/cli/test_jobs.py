"""``calque jobs`` on the command line: what was left is shown, gone on with by one, forgotten."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.cli.conftest import Calque, Spawn
from tests.operator.services.s3.server import make_bucket
from tests.servers.proxy import Fault, FaultProxy
from tests.servers.seaweedfs import S3Server

COUNT = 40
OPTIONS = ("--concurrent", "2", "--report", "rows.jsonl", "-o", "key_order=false")
_numbers = count()


@pytest.fixture
def proxy(seaweed: S3Server, environment: dict[str, str]) -> Iterator[FaultProxy]:
    """A server with a bucket, as the commands reach it."""
    make_bucket(seaweed, "cli-jobs")
    with FaultProxy(seaweed.endpoint) as running:
        environment |= {**seaweed.environment, "AWS_ENDPOINT_URL_S3": running.endpoint}
        yield running


@pytest.fixture
def command(folder: Path) -> tuple[str, ...]:
    """A sync of some files to a root of its own."""
    (folder / "many").mkdir()
    for number in range(COUNT):
        (folder / "many" / f"{number:03}").write_text("x")
    return ("sync", "many/", f"s3://cli-jobs/r{next(_numbers)}/", *OPTIONS)


@pytest.fixture
def left(calque: Calque, spawn: Spawn, proxy: FaultProxy, command: tuple[str, ...]) -> str:
    """The job of a run that was killed after some objects; what comes now is slow."""
    slow = Fault(method="PUT", times=None, delay=0.2)
    proxy.add(slow)
    process = spawn(*command)
    wait_for_puts(proxy, 6)
    process.kill()
    process.communicate()
    (job,) = json.loads(calque("jobs", "ls", "--json").stdout)
    proxy.reset()
    proxy.add(slow)
    return str(job["job"])


def wait_for_puts(proxy: FaultProxy, least: int) -> None:
    until = time.monotonic() + 100
    while proxy.count("PUT") < least:
        assert time.monotonic() < until, "nothing is written"
        time.sleep(0.02)


def rows_of(folder: Path) -> Counter[str]:
    lines = (folder / "rows.jsonl").read_text().splitlines()
    return Counter(json.loads(line)["path"] for line in lines)


WANTED = Counter(f"{number:03}" for number in range(COUNT))


def test_two_that_resume_at_the_same_moment(
    spawn: Spawn, folder: Path, proxy: FaultProxy, left: str
) -> None:
    """One goes on with it and ends well; the other is told who is at it, and has touched nothing:
    each object is sent at most once by the two, and has one row."""
    both = [spawn("jobs", "resume", left, "--quiet") for _ in range(2)]
    said = [process.communicate(timeout=200)[1] for process in both]
    codes = [process.returncode for process in both]
    assert sorted(codes) == [0, 1], said
    assert f"job {left} is at work on these two trees" in said[codes.index(1)]
    sent = Counter(each.target for each in proxy.log if each.method == "PUT")
    assert set(sent.values()) == {1}
    assert rows_of(folder) == WANTED


@pytest.mark.parametrize("more", [(), ("--restart",), ("--compare", "size")])
def test_its_own_command_while_it_is_resumed(
    calque: Calque,
    spawn: Spawn,
    folder: Path,
    proxy: FaultProxy,
    command: tuple[str, ...],
    left: str,
    more: tuple[str, ...],
) -> None:
    """It is refused by the name of the job, also where it would begin anew or with other options;
    the rows and the objects of the one that is at it are its own."""
    resumed = spawn("jobs", "resume", left, "--quiet")
    wait_for_puts(proxy, 2)
    refused = calque(*command, *more)
    assert refused.returncode == 1
    assert f"job {left} is at work on these two trees" in refused.stderr
    forgot = calque("jobs", "rm", left)
    assert (forgot.returncode, left in forgot.stderr) == (1, True)
    _, said = resumed.communicate(timeout=200)
    assert resumed.returncode == 0, said
    sent = Counter(each.target for each in proxy.log if each.method == "PUT")
    assert set(sent.values()) == {1}
    assert rows_of(folder) == WANTED


def test_a_job_is_shown_resumed_and_forgotten(
    calque: Calque, folder: Path, environment: dict[str, str], proxy: FaultProxy, left: str
) -> None:
    """A dead one is told as such, with the way on; one that is over is not resumed; no secret is
    told; what is forgotten is listed no more, and what it copied stays."""
    (listed,) = json.loads(calque("jobs", "ls", "--json").stdout)
    assert (listed["state"], listed["kind"]) == ("DIED", "sync")
    shown = calque("jobs", "show", left)
    assert f"go on with: calque jobs resume {left}" in shown.stderr
    document = calque("jobs", "show", left, "--json").stdout
    assert json.loads(document)["ranges_left"]
    assert environment["AWS_SECRET_ACCESS_KEY"] not in document
    proxy.reset()
    done = calque("jobs", "resume", left, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["job"] == left
    assert rows_of(folder) == WANTED
    again = calque("jobs", "resume", left)
    assert (again.returncode, "is over" in again.stderr) == (1, True)
    assert calque("jobs", "resume", "nobody's").returncode == 1
    assert calque("jobs", "rm", left).returncode == 0
    assert json.loads(calque("jobs", "ls", "--json").stdout) == []
    assert calque("jobs", "show", left).returncode == 1
    assert rows_of(folder) == WANTED
