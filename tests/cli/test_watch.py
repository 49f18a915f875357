"""``calque load --watch``: what it outlives, what it prints, and how it ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from deltalake import DeltaTable
from sqlalchemy import select

from calque.ledger import open_ledger
from calque.ledger.schema import claims, loads
from tests.frozen import wake_with
from tests.servers.postgres import running_postgres

PATIENCE = 90.0


class Running:
    """A watch in a process of its own, and what it has printed."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self.folder = folder
        self.process = process

    @property
    def said(self) -> str:
        return (self.folder / "said").read_text()

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait for something to come true while the watch lives."""
        until = time.monotonic() + PATIENCE
        while not holds():
            assert self.process.poll() is None, self.said
            assert time.monotonic() < until, self.said
            time.sleep(0.05)

    def rows(self) -> int:
        table = self.folder / "t"
        if not DeltaTable.is_deltatable(str(table)):
            return 0
        return DeltaTable(str(table)).to_pyarrow_table().num_rows

    def is_frozen(self) -> bool:
        """Whether it stands at its fault point, so that a signal strikes just there."""
        stat = Path(f"/proc/{self.process.pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] == "T"

    def stop(self, number: int = signal.SIGINT) -> int:
        wake_with(self.process.pid, number)  # one that is not frozen does not mind
        return self.process.wait(PATIENCE)


@contextmanager
def watching(
    folder: Path,
    *flags: str,
    fault: str = "",
    watch: bool = True,
    ledger: str | None = None,
    make_stage: bool = True,
) -> Iterator[Running]:
    """A watch over ``in/`` into ``t``, looking ten times a second; or a single load."""
    if make_stage:
        (folder / "in").mkdir(exist_ok=True)
    command = ["load", "in/", "--into", "./t", *flags]
    command += ["--watch", "--every", "0.1s"] if watch else []
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "calque.cli", *command],
            cwd=folder,
            env={
                **{name: text for name, text in os.environ.items() if name != "PYTHONUNBUFFERED"},
                "CALQUE_LEDGER_URL": ledger or str(folder / "ledger.db"),
                "CALQUE_FAULT": fault,
            },
            stdout=said,
            stderr=subprocess.STDOUT,
        )
        try:
            yield Running(folder, process)
        finally:
            process.kill()
            process.wait()


def write(folder: Path, name: str, text: str) -> None:
    """A file that is there at once, as a whole."""
    (folder / "in").mkdir(exist_ok=True)
    (folder / ("." + name)).write_text(text)
    (folder / ("." + name)).rename(folder / "in" / name)


@pytest.mark.parametrize("policy", ["abort", "skip_file"])
def test_a_bad_file_is_told_once_and_left_alone(tmp_path: Path, policy: str) -> None:
    """The others are loaded, before and after it; once it is mended it is loaded too."""
    write(tmp_path, "a.csv", "id,name\n1,x\n")
    with watching(tmp_path, "--on-error", policy) as watch:
        watch.until(lambda: watch.rows() == 1)
        write(tmp_path, "b.csv", "id,name\nnone,y\n")
        write(tmp_path, "c.csv", "id,name\n2,z\n")
        watch.until(lambda: watch.rows() == 2)
        write(tmp_path, "d.csv", "id,name\n3,z\n")
        watch.until(lambda: watch.rows() == 3)
        assert watch.said.count("b.csv") <= 2  # a result row, or one line
        write(tmp_path, "b.csv", "id,name\n4,mended\n")
        watch.until(lambda: watch.rows() == 4)
        watch.stop()


def test_a_bad_first_file_makes_no_table(tmp_path: Path) -> None:
    """A watch that begins with a bad file waits for a good one."""
    write(tmp_path, "a.csv", "id,name\n1,x\n2,y,z\n")
    with watching(tmp_path) as watch:
        watch.until(lambda: "a.csv" in watch.said)
        assert not (tmp_path / "t" / "_delta_log").exists()
        write(tmp_path, "b.csv", "id,name\n1,x\n")
        watch.until(lambda: watch.rows() == 1)
        watch.stop()


def test_it_prints_what_happened_and_not_what_it_skipped(tmp_path: Path) -> None:
    """Cycles in which nothing is new print nothing; those that load print what they loaded."""
    for number in range(20):
        write(tmp_path, f"{number}.csv", f"id,name\n{number},x\n")
    with watching(tmp_path) as watch:
        watch.until(lambda: watch.rows() == 20)
        for number in range(20, 25):
            write(tmp_path, f"{number}.csv", f"id,name\n{number},x\n")
            watch.until(lambda wanted=number + 1: watch.rows() == wanted)
        watch.stop()
        assert watch.said.count("SKIPPED_LOADED\t") == 0
        assert len(watch.said) < 5000


def test_a_stage_and_a_ledger_that_go_away(tmp_path: Path) -> None:
    """A stage that is gone for a while is waited for; only at the beginning it is wrong usage."""
    write(tmp_path, "a.csv", "id,name\n1,x\n")
    with watching(tmp_path) as watch:
        watch.until(lambda: watch.rows() == 1)
        shutil.move(tmp_path / "in", tmp_path / "away")
        watch.until(lambda: "is not there" in watch.said)
        shutil.move(tmp_path / "away", tmp_path / "in")
        write(tmp_path, "b.csv", "id,name\n2,x\n")
        watch.until(lambda: watch.rows() == 2)
        assert watch.said.count("is not there") == 1
        watch.stop()


def test_wrong_usage_ends_it(tmp_path: Path) -> None:
    """What can never work is told at once."""
    with watching(tmp_path, "--columns", "a,a") as watch:
        assert watch.process.wait(PATIENCE) == 2


@pytest.mark.parametrize(
    ("number", "step"),
    [
        (signal.SIGINT, "claim.after"),
        (signal.SIGTERM, "write.before"),
        (signal.SIGINT, "prepare.sidecar"),
        (signal.SIGTERM, "prepare.after"),
    ],
)
def test_it_ends_by_a_signal_with_its_claims_released(
    tmp_path: Path, number: int, step: str
) -> None:
    """Ctrl-C and SIGTERM end a watch at any step of a load, and nothing is held after it."""
    write(tmp_path, "a.csv", "id,name\n1,x\n")
    with watching(tmp_path, fault=f"{step}@1:pause=60") as watch:
        watch.until(watch.is_frozen)
        assert held(tmp_path)
        assert watch.stop(number) == 0
        assert "stopped watching" in watch.said
    assert held(tmp_path) == []
    assert states(tmp_path) == {"ABORTED"}


@pytest.mark.parametrize("step", ["table.after", "commit.after"])
def test_a_signal_behind_the_making_of_the_table_leaves_the_load_committed(
    tmp_path: Path, step: str
) -> None:
    """What the table has is recorded before the process ends, and it is not left without rows."""
    write(tmp_path, "a.csv", "id,name\n1,x\n")
    with watching(tmp_path, fault=f"{step}@1:pause=60", watch=False) as load:
        load.until(load.is_frozen)
        assert load.stop(signal.SIGINT) == 130
        assert load.rows() == 1
    assert held(tmp_path) == []
    assert states(tmp_path) == {"COMMITTED"}


def test_sigterm_ends_a_load_as_ctrl_c_does(tmp_path: Path) -> None:
    """A load that is told to end releases its files, and the next one takes them at once."""
    write(tmp_path, "a.csv", "id,name\n1,x\n")
    with watching(tmp_path, fault="write.before@1:pause=60", watch=False) as load:
        load.until(load.is_frozen)
        assert load.stop(signal.SIGTERM) == 130
    assert held(tmp_path) == []
    with watching(tmp_path, watch=False) as load:
        assert load.process.wait(PATIENCE) == 0
        assert load.rows() == 1


def states(folder: Path) -> set[str]:
    with open_ledger(str(folder / "ledger.db")) as ledger, ledger.read() as connection:
        return set(connection.execute(select(loads.c.state)).scalars())


def held(folder: Path) -> list[object]:
    if not (folder / "ledger.db").exists():
        return []
    with open_ledger(str(folder / "ledger.db")) as ledger, ledger.read() as connection:
        return list(connection.execute(select(claims)).all())


def test_the_ledgers_database_goes_away_and_comes_back(tmp_path: Path) -> None:
    """PostgreSQL ends as in a crash and starts again: the watch waits; each file counts once."""
    write(tmp_path, "a.csv", "id,name\n1,x\n")
    with running_postgres() as server:
        with watching(tmp_path, ledger=server.database()) as watch:
            watch.until(lambda: watch.rows() == 1)
            server.go_away()
            write(tmp_path, "b.csv", "id,name\n2,y\n")
            watch.until(lambda: "trying again" in watch.said)
            server.come_back()
            watch.until(lambda: watch.rows() == 2)
            write(tmp_path, "c.csv", "id,name\n3,z\n")
            watch.until(lambda: watch.rows() == 3)
            watch.stop()
        assert "Traceback" not in watch.said


def test_a_ledger_that_is_away_at_first(tmp_path: Path) -> None:
    """A watch that is started before its database, as after a restart of the machine, waits."""
    write(tmp_path, "a.csv", "id,name\n1,x\n")
    with running_postgres() as server:
        url = server.database()
        server.go_away()
        with watching(tmp_path, ledger=url) as watch:
            watch.until(lambda: "trying again" in watch.said)
            server.come_back()
            watch.until(lambda: watch.rows() == 1)
            assert watch.stop() == 0


def test_a_stage_that_was_loaded_before_may_be_away_at_first(tmp_path: Path) -> None:
    """A watch that is started anew while its stage is away waits for it.

    One that never was there is wrong usage, and ends it.
    """
    write(tmp_path, "a.csv", "id,name\n1,x\n")
    with watching(tmp_path, watch=False) as load:
        assert load.process.wait(PATIENCE) == 0
    shutil.move(tmp_path / "in", tmp_path / "away")
    with watching(tmp_path, make_stage=False) as watch:
        watch.until(lambda: "is not there" in watch.said)
        shutil.move(tmp_path / "away", tmp_path / "in")
        write(tmp_path, "b.csv", "id,name\n2,x\n")
        watch.until(lambda: watch.rows() == 2)
        watch.stop()
    (tmp_path / "elsewhere").mkdir()
    with watching(tmp_path / "elsewhere", make_stage=False) as watch:
        assert watch.process.wait(PATIENCE) == 1


@pytest.mark.soak
def test_a_jvm_that_dies(tmp_path: Path) -> None:
    """One that is killed is started anew, without a trace of it, and the files count once."""
    write(tmp_path, "a.csv", "id,name\n1,x\n")
    fault = "write.before@2:pause=60"
    with watching(tmp_path, "--spark", "local[1]", fault=fault) as watch:
        watch.until(lambda: watch.rows() == 1)
        (first,) = jvms_of(watch.process.pid)
        write(tmp_path, "b.csv", "id,name\n2,y\n")
        watch.until(watch.is_frozen)
        os.kill(first, signal.SIGKILL)
        wake_with(watch.process.pid, signal.SIGCONT)
        watch.until(lambda: watch.rows() == 2)
        assert "Traceback" not in watch.said, watch.said
        (second,) = jvms_of(watch.process.pid)
        assert second != first
        assert watch.stop() == 0
    assert held(tmp_path) == []


def jvms_of(pid: int) -> list[int]:
    """The JVMs that a process has started, and that live."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            name, _, rest = stat.read_text().partition("(")[2].rpartition(")")
            if name == "java" and rest.split()[:2][1] == str(pid) and rest.split()[0] not in "ZX":
                found.append(int(stat.parent.name))
    return found
