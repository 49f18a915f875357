"""Whatever goes wrong: the old target is intact, no temporary file is left, the error is clear."""

from __future__ import annotations

import os
import resource
import signal
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Literal

import pytest

from calque.errors import InvalidInput, Unavailable
from calque.operator import Operator
from calque.operator.layers import Fault, FaultInjection, Retry
from tests.operator.recorder import Hook, failing
from tests.operator.services.fs.conftest import finish, names, open_to_all, start

FULL_DISK = """
import os, subprocess, sys
from calque.errors import CalqueError
from calque.operator import Operator
folder, source = sys.argv[1:]
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", folder], check=True)
op, origin = Operator.from_uri(folder), Operator.from_uri(source)
op.write("to", b"old")
for work in (lambda: origin.copy("from", "to", into=op), lambda: op.write("to", b"x" * 2**21)):
    try:
        work()
    except CalqueError as error:
        print(type(error).__name__, "disk full" in str(error), op.read("to"), os.listdir(folder))
"""


def test_a_full_disk(tmp_path: Path, own_mounts: tuple[str, ...]) -> None:
    """ResourceExhausted that says so, from a copy and from a write."""
    disk, source = tmp_path / "disk", tmp_path / "source"
    disk.mkdir()
    Operator.from_uri(str(source)).write("from", os.urandom(2**21))
    out = finish(start(FULL_DISK, disk, source, prefix=own_mounts))
    assert out.splitlines() == ["ResourceExhausted True b'old' ['to']"] * 2


READ_ONLY = """
import os, subprocess, sys
from calque.errors import CalqueError
from calque.operator import Operator
folder = sys.argv[1]
subprocess.run(["mount", "--bind", folder, folder], check=True)
subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)
op = Operator.from_uri(folder)
for work in (
    lambda: op.copy("from", "to"),
    lambda: op.write("to", b"x"),
    lambda: op.delete("from"),
    lambda: op.write("new/deep", b"x"),
):
    try:
        work()
    except CalqueError as error:
        print(type(error).__name__, "read-only" in str(error))
print(op.read("from"), op.read("to"), sorted(os.listdir(folder)))
"""


def test_a_read_only_file_system(op: Operator, folder: Path, own_mounts: tuple[str, ...]) -> None:
    """PermissionDenied that says so, from every verb that writes."""
    op.write("from", b"from")
    op.write("to", b"old")
    *said, rest = finish(start(READ_ONLY, folder, prefix=own_mounts)).splitlines()
    assert said == ["PermissionDenied True"] * 4
    assert rest == "b'from' b'old' ['from', 'to']"


NO_RIGHTS = """
import os, sys
from calque.errors import PermissionDenied
from calque.operator import Operator
op = Operator.from_uri(sys.argv[1])
op.stat("from")
if os.geteuid() == 0: os.setgid(65534); os.setuid(65534)
for work in (
    lambda: op.copy("from", "locked/to"),
    lambda: op.copy("secret", "open/to"),
    lambda: op.write("locked/to", b"x"),
    lambda: op.delete("locked/to"),
):
    try:
        work()
    except PermissionDenied as error:
        print(error.message)
"""


def test_no_rights(op: Operator, folder: Path) -> None:
    """PermissionDenied that names the file, for the source as for the target."""
    op.write("from", b"from")
    op.write("secret", b"secret")
    op.write("locked/to", b"old")
    op.write("open/x", b"")
    open_to_all(folder)
    os.chmod(folder / "secret", 0)
    os.chmod(folder / "locked", 0o555)
    os.chmod(folder / "open", 0o777)
    said = finish(start(NO_RIGHTS, folder)).splitlines()
    os.chmod(folder / "locked", 0o755)
    assert [line.split("'")[1] for line in said] == [
        f"{folder}/{name}" for name in ("locked/to", "secret", "locked/to", "locked/to")
    ]
    assert names(folder / "locked") == ["to"]
    assert names(folder / "open") == ["x"]
    assert op.read("locked/to") == b"old"


def test_a_limit_on_file_sizes(op: Operator, folder: Path) -> None:
    """What ulimit forbids is refused as too large, and nothing is left."""
    op.write("from", os.urandom(100_000))
    op.write("to", b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(InvalidInput):
            op.copy("from", "to")
        with pytest.raises(InvalidInput):
            op.write("to", b"x" * 60_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert op.read("to") == b"old"
    assert names(folder) == ["from", "to"]


@pytest.mark.parametrize("verb", ["copy_begin", "copy_chunk", "copy_commit"])
@pytest.mark.parametrize("after", [False, True])
def test_any_request_may_fail(op: Operator, folder: Path, verb: str, after: bool) -> None:
    """The original error comes out, nothing is left; only a done commit stays done."""
    op.write("from", b"new")
    op.write("to", b"old")
    layered = op.layer(Hook(verb, failing(Unavailable("lost")), after=after))
    with pytest.raises(Unavailable, match="lost"):
        layered.copy("from", "to")
    done = verb == "copy_commit" and after
    assert op.read("to") == (b"new" if done else b"old")
    assert names(folder) == ["from", "to"]


@pytest.mark.parametrize("verb", ["copy_begin", "copy_chunk"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("resumed", [False, True])
def test_a_lost_answer_is_asked_for_again(
    op: Operator, folder: Path, verb: str, when: Literal["before", "after"], resumed: bool
) -> None:
    """What happened already is not counted twice and leaves no second temporary file."""
    data = os.urandom(5000)
    op.write("from", data)
    fault = FaultInjection(Fault(verb=verb, when=when, times=2, error=Unavailable("lost")))
    flaky = op.layer(fault).layer(Retry(first=0.001))
    if resumed:
        begun = op.copier("from", "to", chunk=1000)
        next(begun)
        copier = flaky.resume(begun.pause())
    else:
        copier = flaky.copier("from", "to", chunk=1000)
    steps = list(copier)
    assert steps == [1000] * 5
    assert op.read("to") == data
    assert names(folder) == ["from", "to"]


@pytest.mark.parametrize("verb", ["write_begin", "write_chunk", "write_commit"])
@pytest.mark.parametrize("attempts", [1, 2])
def test_a_write_whose_answer_is_lost(op: Operator, folder: Path, verb: str, attempts: int) -> None:
    """Repeated where that is safe, else the error comes out; never a temporary file is left."""
    op.write("to", b"old")
    fault = FaultInjection(Fault(verb=verb, when="after", error=Unavailable("lost")))
    flaky = op.layer(fault).layer(Retry(attempts=attempts, first=0.001))
    fails = attempts == 1 or verb == "write_commit"
    with pytest.raises(Unavailable) if fails else nullcontext():
        flaky.write("to", [b"new", b"er"])
    done = not fails or verb == "write_commit"
    assert op.read("to") == (b"newer" if done else b"old")
    assert names(folder) == ["to"]


def test_a_broken_source_of_a_write(op: Operator, folder: Path) -> None:
    """An error out of the chunks passes through and nothing is left."""

    def chunks() -> object:
        yield b"half"
        raise RuntimeError("broken")

    op.write("to", b"old")
    with pytest.raises(RuntimeError, match="broken"):
        op.write("to", chunks())  # type: ignore[arg-type]
    assert op.read("to") == b"old"
    assert names(folder) == ["to"]


def test_readers_see_old_or_new(op: Operator, folder: Path) -> None:
    """While copies replace a file again and again, every read is whole."""
    contents = [bytes([number]) * 300_000 for number in (1, 2)]
    for number, content in enumerate(contents):
        op.write(f"from{number}", content)
    op.copy("from0", "to")
    stop, seen, wrong = threading.Event(), set(), []

    def read() -> None:
        while not stop.is_set():
            found = (folder / "to").read_bytes()
            seen.add(found[:1])
            if found not in contents:
                wrong.append(len(found))

    thread = threading.Thread(target=read)
    thread.start()
    try:
        for turn in range(40):
            op.copy(f"from{turn % 2}", "to", chunk=50_000)
    finally:
        stop.set()
        thread.join()
    assert not wrong
    assert seen <= {b"\1", b"\2"}


RACE = """
import sys
from calque.errors import ConditionNotMatch
from calque.operator import Operator
folder, mine = sys.argv[1:]
op = Operator.from_uri(folder, durable=False)
for line in sys.stdin:
    target = line.strip()
    try:
        op.copy(mine, target, if_not_exists=True)
        print("won", flush=True)
    except ConditionNotMatch:
        print("lost", flush=True)
"""


def test_two_processes_race(op: Operator, folder: Path) -> None:
    """A hundred rounds of two copies to one new name: exactly one wins, and its bytes are there."""
    for name in ("one", "two"):
        op.write(name, name.encode() * 1000)
    racers = [start(RACE, folder, name) for name in ("one", "two")]
    wins = []
    try:
        for turn in range(100):
            for racer in racers:
                assert racer.stdin is not None
                racer.stdin.write(f"target{turn}\n")
                racer.stdin.flush()
            said = [racer.stdout.readline().strip() for racer in racers if racer.stdout]
            assert sorted(said) == ["lost", "won"], turn
            wins.append(said.index("won"))
            assert op.read(f"target{turn}") == (b"one", b"two")[wins[-1]] * 1000
    finally:
        for racer in racers:
            racer.communicate(timeout=30)
    assert len(names(folder)) == 102
    assert not list(op.leftovers())


def test_hard_links_do_when_renameat2_is_missing(
    op: Operator, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On file systems without it if_not_exists is as atomic, and no second name is left."""
    from calque.operator.services.fs import syscalls

    def refuse(*_: object) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(syscalls, "rename_no_replace", refuse)
    op.write("from", b"new")
    op.copy("from", "to", if_not_exists=True)
    with pytest.raises(Exception, match="exists already"):
        op.copy("from", "to", if_not_exists=True)
    assert op.read("to") == b"new"
    assert os.stat(folder / "to").st_nlink == 1
    assert names(folder) == ["from", "to"]


def test_neither_rename_nor_links(
    op: Operator, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no atomic way exists: Unsupported before any byte is copied."""
    from calque.operator.services.fs import syscalls

    def refuse(*_: object, **__: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(syscalls, "rename_no_replace", refuse)
    monkeypatch.setattr(os, "link", refuse)
    op.write("from", b"new")
    faults = FaultInjection(Fault(verb="none", delay=1))
    with pytest.raises(NotImplementedError, match="if_not_exists"):
        op.layer(faults).copy("from", "to", if_not_exists=True)
    assert faults.count("copy_chunk") == 0
    assert names(folder) == ["from"]


KILLED = """
import sys
from calque.operator import Operator
op = Operator.from_uri(sys.argv[1])
copier = op.copier("from", "to", chunk=1000)
next(copier)
print("half", flush=True)
sys.stdin.read()
"""


def test_a_killed_copy_leaves_the_old_target(op: Operator, folder: Path) -> None:
    """SIGKILL midway: the old target is intact, readers see nothing, a sweep finds the rest."""
    op.write("from", os.urandom(10_000))
    op.write("to", b"old")
    process = start(KILLED, folder)
    assert process.stdout is not None
    assert process.stdout.readline() == "half\n"
    assert list(op.leftovers()) == [], "a living copy is no leftover"
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    assert op.read("to") == b"old"
    assert [entry.path for entry in op.list()] == ["from", "to"]
    (left,) = op.leftovers()
    assert left.kind == "temporary file"
    assert left.location == op.location("to")
    assert left.started is not None
    assert time.time() - left.started.timestamp() < 600
    op.remove_leftover(left)
    op.remove_leftover(left)
    assert names(folder) == ["from", "to"]
