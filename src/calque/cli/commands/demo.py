"""``calque demo``: the tour. Real commands on real files, each printed before it runs."""

from __future__ import annotations

import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from calque.cli.output import console, size, table
from calque.errors import Aborted, AlreadyExists
from calque.values import MIB

app = typer.Typer(add_completion=False)

MARK = ".calque-demo"
"""A file that says: this folder is ours to make anew."""

ADDRESS = "http://127.0.0.1:7780/console"
"""Where `calque serve` has its console, if it is asked for that port."""

SERVE = ("serve", "store", "--no-s3", "--port", "0")
"""Ports that are free, since the demo may run beside anything."""


@app.command()
def demo(
    folder: Annotated[
        Path, typer.Option(help="Where the demo's files go; made anew at each run.")
    ] = Path("demo"),
    keep: Annotated[bool, typer.Option(help="Leave the files there afterwards.")] = True,
    browse: Annotated[
        bool | None,
        typer.Option(
            "--console/--no-console",
            help="At the end serve all of it to a browser, until Ctrl-C; by default on a terminal.",
        ),
    ] = None,
) -> None:
    """Show calque at work: files into a table, a tree, an object store, a copy stopped and resumed.

    Every command is printed before it runs, so that you can type it yourself in that folder. At the
    end the console shows what was done: its address is printed.

    Examples:

      calque demo

      calque demo --folder tour --no-keep --no-console
    """
    started = time.monotonic()
    tour = Tour(_fresh(folder))
    for chapter in (
        files_into_a_table,
        a_tree_kept_alike,
        copies_in_the_store,
        a_store_that_heals,
        a_copy_stopped_and_resumed,
    ):
        chapter(tour)
    tour.heading("Summary")
    table(["what", "seen"], tour.seen)
    say(f"\nAll of it in {time.monotonic() - started:.0f} s. The files are in {folder}/.")
    if browse or (browse is None and keep and sys.stdout.isatty()):
        tour.browse()
    elif keep:
        say(f"See it in a browser, at {ADDRESS}: {tour.console_command()}")
    if not keep:
        shutil.rmtree(folder)


@dataclass
class Tour:
    """A folder, the commands run in it, and what they showed."""

    folder: Path
    seen: list[tuple[str, str]] = field(default_factory=list)

    def heading(self, text: str) -> None:
        from rich.rule import Rule

        console().print()
        console().print(Rule(text, align="left"))

    def run(self, *arguments: str, expect: int = 0, more: Mapping[str, str] | None = None) -> None:
        """Print a command, run it, and stop the tour where it does not end as it should."""
        environment = self._environment | dict(more or {})
        done = subprocess.run(self._announce(arguments), cwd=self.folder, env=environment)
        if done.returncode != expect:
            raise Aborted(f"the demo stopped: calque {arguments[0]} ended with {done.returncode}")

    def stop_midway(
        self,
        *arguments: str,
        when: Callable[[], bool],
    ) -> int:
        """Print a command, start it, and press Ctrl-C once ``when`` holds; its exit code."""
        # In the background of a shell Ctrl-C is ignored, and would be by what is started here.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        running = subprocess.Popen(
            self._announce(arguments), cwd=self.folder, env=self._environment
        )
        while running.poll() is None and not when():
            time.sleep(0.005)
        running.send_signal(signal.SIGINT)
        return running.wait()

    def browse(self) -> None:
        """Serve what was made to a browser, until Ctrl-C, which is meant for the server alone."""
        self.heading("All of it in a browser")
        say("Open the address below. Ctrl-C ends it.")
        serving = subprocess.Popen(self._announce(SERVE), cwd=self.folder, env=self._environment)
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            if serving.wait():
                raise Aborted(f"the demo stopped: calque serve ended with {serving.returncode}")
        finally:
            signal.signal(signal.SIGINT, before)

    def console_command(self) -> str:
        """What to type to see the same later."""
        words = shlex.join(("calque", *SERVE, "--console-port", "7780"))
        return f"cd {shlex.quote(str(self.folder))} && XDG_STATE_HOME=$PWD/state {words}"

    def note(self, what: str, seen: str, held: bool) -> None:
        """Keep a line for the summary; what does not hold ends the tour."""
        if not held:
            raise Aborted(f"the demo failed: {what}: {seen}")
        self.seen.append((what, seen))
        say(f"→ {what}: {seen}")

    def _announce(self, arguments: tuple[str, ...]) -> list[str]:
        from rich.text import Text

        console().print()
        console().print(Text(f"$ calque {shlex.join(arguments)}", style="bold cyan"))
        return [sys.executable, "-m", "calque.cli", *arguments]

    @property
    def _environment(self) -> dict[str, str]:
        # What calque remembers stays in the demo's own folder, and calque:// means its store.
        state = str(self.folder.resolve() / "state")
        return os.environ | {"XDG_STATE_HOME": state, "CALQUE_PROJECT": "store"}


def say(line: str) -> None:
    """A line of the guide's own."""
    from rich.console import Console
    from rich.text import Text

    Console(highlight=False, soft_wrap=True).print(Text(line, style="green"))


def _fresh(folder: Path) -> Path:
    if folder.exists() and not (folder / MARK).exists() and any(folder.iterdir()):
        raise AlreadyExists(
            f"{folder} is there and was not made by the demo",
            hint="Name another folder with --folder.",
        )
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / MARK).touch()
    return folder


def files_into_a_table(tour: Tour) -> None:
    """Load, load again, change one file, load once more."""
    tour.heading("Files into a table, each exactly once")
    landing = tour.folder / "landing"
    landing.mkdir()
    for day in (1, 2, 3):
        _sales(landing / f"day-{day}.csv", day, 20_000)
    load = ("load", "landing/", "--into", "warehouse/sales")
    tour.run(*load)
    tour.note("three files loaded", f"{_rows(tour)} rows", _rows(tour) == 60_000)
    say("The same command again: nothing is new, so nothing is loaded (and no JVM starts).")
    tour.run(*load)
    tour.note("loaded again", f"still {_rows(tour)} rows", _rows(tour) == 60_000)
    say("One file changes: only that one is loaded, and its old rows are replaced.")
    _sales(landing / "day-2.csv", 2, 25_000)
    tour.run(*load, "--on-changed", "replace")
    tour.note("one file changed", f"{_rows(tour)} rows", _rows(tour) == 65_000)
    tour.run("history", "warehouse/sales")


def a_tree_kept_alike(tour: Tour) -> None:
    """Sync, again, after a change; and prove it."""
    tour.heading("A tree kept like another")
    sync = ("sync", "landing/", "mirror/landing/", "--delete", "--yes")
    tour.run(*sync)
    (tour.folder / "landing" / "day-3.csv").rename(tour.folder / "landing" / "third.csv")
    say("A file has another name now. What would be done? And then do it.")
    tour.run(*sync, "--dry-run")
    tour.run(*sync)
    tour.run("check", "landing/", "mirror/landing/")
    names = sorted(path.name for path in (tour.folder / "mirror" / "landing").iterdir())
    tour.note("a tree synchronised", ", ".join(names), names[-1] == "third.csv" and len(names) == 3)


def copies_in_the_store(tour: Tour) -> None:
    """Upload, copy, delete the original, read the copy."""
    tour.heading("A store in which a copy is one transaction")
    say("calque:// means the store in the folder that CALQUE_PROJECT names: here, store/.")
    original = random.Random(7).randbytes(96 * MIB)
    (tour.folder / "film.bin").write_bytes(original)
    tour.run("store", "init", "store")
    tour.run("store", "mkbucket", "films")
    tour.run("cp", "film.bin", "calque://films/a.bin", "--stream")
    started = time.monotonic()
    tour.run("cp", "calque://films/a.bin", "calque://films/2026/b.bin")
    took = time.monotonic() - started
    tour.run("rm", "calque://films/a.bin")
    tour.run("cp", "calque://films/2026/b.bin", "back.bin", "--stream")
    same = (tour.folder / "back.bin").read_bytes() == original
    tour.note("96 MiB copied in the store", f"{took:.1f} s with the command's start", True)
    tour.note("the original deleted, the copy read back", "the same bytes", same)
    tour.run("cp", "calque://films/2026/b.bin", "calque://films/best/b.bin")
    tour.run("store", "tally", "store")


def a_store_that_heals(tour: Tour) -> None:
    """Two nodes are deleted, an upload is killed: repair and garbage collection."""
    tour.heading("A store that looks after itself")
    say("Each segment becomes six pieces on eight nodes, and any four of them give it back.")
    nodes = [f"disks/{number}" for number in range(1, 9)]
    flags = [word for node in nodes for word in ("--node", str((tour.folder / node).resolve()))]
    tour.run("store", "init", "safe", "--pieces", "4/6", *flags)
    safe = {"CALQUE_PROJECT": "safe"}
    tour.run("store", "mkbucket", "films", more=safe)
    tour.run("cp", "film.bin", "calque://films/a.bin", "--stream", more=safe)
    say("Two disks are gone. Everything can still be read, and repair builds the pieces anew.")
    for node in nodes[:2]:
        shutil.rmtree(tour.folder / node)
    tour.run("store", "repair", "safe", "--gone-after", "0")
    tour.run("cp", "calque://films/a.bin", "healed.bin", "--stream", more=safe)
    same = (tour.folder / "healed.bin").read_bytes() == (tour.folder / "film.bin").read_bytes()
    tour.note("two of eight nodes deleted, then repaired", "the same bytes", same)
    before = _pieces(tour)
    say("An upload is killed when its pieces are on the nodes and no row names them yet.")
    tour.run(
        "cp", "film.bin", "calque://films/killed.bin", "--stream",
        expect=-signal.SIGKILL, more=safe | {"CALQUE_FAULT": "upload.pieces:kill"},
    )  # fmt: skip
    left = _pieces(tour) - before
    tour.note("an upload killed", f"{left} pieces that nothing names", left > 0)
    say("An upload may be under way for three days; here nothing else runs, so none is waited for.")
    tour.run("store", "gc", "safe", "--window", "0", "--many")
    gone = before + left - _pieces(tour)
    tour.note("garbage collected", f"{gone} pieces in the trash", gone > 0)
    tour.run("cp", "calque://films/a.bin", "healed.bin", "--stream", more=safe)


def a_copy_stopped_and_resumed(tour: Tour) -> None:
    """Ctrl-C in the middle of a big copy, then go on."""
    tour.heading("A big copy, stopped and resumed")
    big, whole = tour.folder / "big.bin", 1024 * MIB
    _fill(big, whole)
    copy = ("cp", "big.bin", "copy.bin", "--resume")
    target, code = tour.folder / "copy.bin", 0
    for share in (4, 16, 64):  # a quick disk may be done before Ctrl-C arrives: earlier, then
        target.unlink(missing_ok=True)
        code = tour.stop_midway(*copy, when=partial(_has_begun, tour.folder, whole // share))
        if code:
            break
    tour.note("stopped midway", f"exit {code}, no target yet", code != 0 and not target.exists())
    tour.run(*copy)
    same = target.stat().st_size == whole and _same(big, target)
    tour.note("resumed", f"{size(whole)}, the same bytes", same)
    big.unlink()
    target.unlink()


def _pieces(tour: Tour) -> int:
    """Pieces on the disks that are there."""
    found = (tour.folder / "disks").glob("*/pieces/*/*/*")
    return sum(1 for file in found if file.is_file() and not file.name.startswith("."))


def _sales(path: Path, day: int, rows: int) -> None:
    numbers = random.Random(day)
    with path.open("w", encoding="utf-8") as out:
        out.write("id,day,shop,amount\n")
        for number in range(rows):
            cents = numbers.randrange(100, 99_999)
            out.write(f"{day}{number:06},2026-11-{day:02},shop-{number % 7},{cents / 100:.2f}\n")


def _rows(tour: Tour) -> int:
    from deltalake import DeltaTable

    return int(DeltaTable(str(tour.folder / "warehouse" / "sales")).count())


def _fill(path: Path, length: int) -> None:
    block = random.Random(1).randbytes(16 * MIB)
    with path.open("wb") as out:
        for _ in range(length // len(block)):
            out.write(block)


def _has_begun(folder: Path, length: int) -> bool:
    """More than ``length`` is copied: the temporary file is hidden beside its target."""
    try:
        return any(
            entry.stat().st_size > length
            for entry in os.scandir(folder)
            if entry.name.startswith(".") and "copy.bin" in entry.name
        )
    except FileNotFoundError:
        return False


def _same(one: Path, other: Path) -> bool:
    with one.open("rb") as left, other.open("rb") as right:
        while block := left.read(8 * MIB):
            if right.read(len(block)) != block:
                return False
    return True
