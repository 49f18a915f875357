"""Whole trees on one SeaweedFS against s5cmd, rclone and aws s3, the start of each tool counted.

``python -m bench.trees [SCALE]``: 1 copies 10,000 objects of 1 KB each way and compares 100,000 a
side. Every tool has 16 requests in flight, a target of its own in every round, and another one goes
first in each.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.servers.proxy import FaultProxy
from tests.servers.seaweedfs import S3Server

from bench import _s3
from bench._commands import Taken, measure, median_of
from bench._tree_listing import memory_of_a_million, parallel_listings
from bench._tree_spark import on_spark
from bench.table import Row, asked_scale, show
from calque.values import KIB, MIB

_CHUNK = 8 * MIB
_PAGE = 1000
_ROUNDS = 3
_BUCKET = f"s3://{_s3.BUCKET}"
_OURS = "calque"

Command = Callable[[str], list[str]]
"""Makes a tool's command; its argument is a name that no other run has."""
Wanted = Mapping[str, float]
"""For each peer how many times as fast we want to be; one that is not named is only told."""


class Tools:
    """How each tool is told to copy or to bring up to date one tree."""

    def __init__(self, server: S3Server) -> None:
        self.server = server

    def copy(self, source: str, target: str) -> dict[str, Command]:
        """``{}`` in the target is the name of the run."""
        return self._commands("cp", "copy", source, target)

    def sync(self, source: str, target: str) -> dict[str, Command]:
        return self._commands("sync", "sync", source, target)

    def _commands(self, verb: str, rclones: str, source: str, target: str) -> dict[str, Command]:
        at = self.server.endpoint
        recursive = ["--recursive"] if verb == "cp" else []
        all_of = f"{source}*"
        return {
            _OURS: lambda to: ours(verb, source, target.format(to)),
            "s5cmd": lambda to: _s3.s5cmd(verb, all_of, target.format(to), endpoint=at),
            "rclone": lambda to: _s3.rclone(
                rclones, _for_rclone(source), _for_rclone(target.format(to)),
                server=self.server, chunk=_CHUNK, endpoint=at, compares=verb == "sync",
            ),
            "aws s3": lambda to: _s3.aws(
                verb, *recursive, "--quiet", source, target.format(to), chunk=_CHUNK, endpoint=at
            ),
        }  # fmt: skip


def ours(verb: str, source: str, target: str, *flags: str) -> list[str]:
    """Our own command. SeaweedFS lists folder by folder, which it has to be told."""
    sides = (("--source-option", source), ("--target-option", target))
    options = [
        word for name, side in sides if side.startswith("s3:") for word in (name, "key_order=false")
    ]
    recursive = ["-r"] if verb == "cp" else []
    command = _s3.binary(_OURS) or _OURS
    words = [*recursive, "-q", "-c", str(_s3.CONCURRENT), *options, *flags, source, target]
    return [command, verb, *words]


def _for_rclone(place: str) -> str:
    return place.replace("s3://", "W:")


def run(scale: float = 1.0) -> list[Row]:
    """All rows, on one server."""
    count = max(20, int(10_000 * scale))
    base = tempfile.mkdtemp(prefix="calque-bench-trees-", dir=os.environ.get("BENCH_DIR"))
    folder = Path(base)
    try:
        # What our runs remember is part of the measurement, and nobody else's.
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        with _s3.bench_server() as server:
            tools = Tools(server)
            _s3.fill("small/", count, KIB)
            _s3.fill("one/", 1, KIB)
            return [
                *server_side(tools, count),
                *downloads(tools, folder, count),
                *uploads(tools, folder, count, KIB),
                *uploads(tools, folder, max(10, count // 5), 64 * KIB),
                *second_runs(tools, count),
                requests_of_second_run(server, count),
                *memory_of_comparing(tools, max(2000, int(100_000 * scale))),
                resume(count),
                *on_spark(server, count, scale),
                memory_of_a_million(scale),
                *parallel_listings(scale),
            ]
    finally:
        shutil.rmtree(folder)


def server_side(tools: Tools, count: int) -> list[Row]:
    """Copies within the server; the CPU of one, without what a tool takes to copy a single one."""
    whole = _in_turn(
        "across",
        tools.copy(f"{_BUCKET}/small/", _BUCKET + "/{}/"),
        lambda to: _s3.count(f"{to}/") == count,
    )
    bare = _in_turn("one-across", tools.copy(f"{_BUCKET}/one/", _BUCKET + "/{}/"))
    cpu = {name: max(whole[name].cpu - bare[name].cpu, 1e-6) / count for name in whole}
    ratio = cpu[_OURS] / cpu["s5cmd"]
    return [
        *_speeds(
            f"{count} × 1 KB server-side", whole, count, {"s5cmd": 1.2, "rclone": 1.5, "aws s3": 3}
        ),
        Row(
            "the same, CPU an object less start", f"{cpu[_OURS] * 1e3:.2f} ms",
            f"s5cmd {cpu['s5cmd'] * 1e3:.2f} ms", ratio, "at most 0.9", ratio <= 0.9,
        ),
    ]  # fmt: skip


def downloads(tools: Tools, folder: Path, count: int) -> list[Row]:
    """S3 to files. Ours are durable when the command ends; nobody else's are."""
    target = folder / "down"
    target.mkdir()
    taken = _in_turn(
        "down",
        tools.copy(f"{_BUCKET}/small/", f"{target}/{{}}/"),
        lambda to: len(os.listdir(target / to)) == count,
    )
    shutil.rmtree(target)
    return _speeds(f"{count} × 1 KB from S3 to durable files", taken, count, {"s5cmd": 0.9})


def uploads(tools: Tools, folder: Path, count: int, size: int) -> list[Row]:
    """Files to S3."""
    source = folder / f"up{size}"
    source.mkdir()
    body = os.urandom(size)
    for number in range(count):
        (source / f"{number:06}").write_bytes(body)
    taken = _in_turn(
        source.name,
        tools.copy(f"{source}/", _BUCKET + "/{}/"),
        lambda to: _s3.count(f"{to}/") == count,
    )
    shutil.rmtree(source)
    what = f"{count} × {size // KIB} KB from files to S3"
    return _speeds(what, taken, count, {"s5cmd": 0.8, "rclone": 1, "aws s3": 1.5})


def second_runs(tools: Tools, count: int) -> list[Row]:
    """Everything is there already: each tool over the target that it made itself."""
    source, target = f"{_BUCKET}/small/", f"{_BUCKET}/again-{{}}/"
    commands = {}
    for name, command in tools.sync(source, target).items():
        place = _word(name)
        measure(command(place))
        if _s3.count(f"again-{place}/") != count:
            raise SystemExit(f"{name} did not copy everything to again-{place}/")
        commands[name] = _always(command(place))
    taken = _in_turn("again", commands)
    what = f"second run, nothing to do, {count} objects"
    return _speeds(what, taken, count, {"s5cmd": 0.8, "rclone": 3, "aws s3": 2})


def requests_of_second_run(server: S3Server, count: int) -> Row:
    """Counted before the server: the pages of both listings, and nothing else."""
    with FaultProxy(server.endpoint) as proxy:
        through = {"AWS_ENDPOINT_URL_S3": proxy.endpoint}
        command = ours("sync", f"{_BUCKET}/small/", f"{_BUCKET}/counted/")
        measure(command, environment=through)
        proxy.reset()
        measure(command, environment=through)
        seen = len(proxy.log)
    least = 2 * math.ceil(count / _PAGE)
    return Row(
        "requests of that second run", str(seen), f"pages of the two listings {least}",
        seen / least, "at most 1", seen <= least,
    )  # fmt: skip


def memory_of_comparing(tools: Tools, count: int) -> list[Row]:
    """Two equal trees, by names and sizes, and nothing is changed: what a tool holds at most.

    By sizes, because rclone sends a request for each object otherwise.
    """
    for side in ("left/", "right/"):
        _s3.fill(side, count, 1)
    left, right = f"{_BUCKET}/left/", f"{_BUCKET}/right/"
    at = tools.server.endpoint
    commands = {
        _OURS: _always(ours("sync", left, right, "--dry-run", "--compare", "size")),
        "s5cmd": _always(
            _s3.s5cmd("--dry-run", "sync", "--size-only", f"{left}*", right, endpoint=at)
        ),
        "rclone": _always(
            _s3.rclone(
                "sync", "--dry-run", "--size-only", _for_rclone(left), _for_rclone(right),
                server=tools.server, chunk=_CHUNK, endpoint=at, compares=True,
            )
        ),
    }  # fmt: skip
    taken = _in_turn("compare", commands, memory=True)
    held = {name: each.peak for name, each in taken.items()}
    rows = []
    for name, most in (("s5cmd", 0.25), ("rclone", 0.33)):
        ratio = held[_OURS] / held[name]
        rows.append(
            Row(
                f"compare {count:,} a side, peak memory", f"{held[_OURS] / MIB:.0f} MiB",
                f"{name} {held[name] / MIB:.0f} MiB", ratio, f"at most {most}", ratio <= most,
            )
        )  # fmt: skip
    return rows


def resume(count: int) -> Row:
    """Killed when half was copied and run again, against a copy of the other half alone."""
    half = count // 2
    _s3.fill("half/", count - half, KIB)
    fault = {"CALQUE_FAULT": f"tree.copied@{half}:kill"}
    again: list[Taken] = []
    alone: list[Taken] = []
    for turn in range(_ROUNDS):
        command = ours("cp", f"{_BUCKET}/small/", f"{_BUCKET}/killed-{turn}/")
        measure(command, environment=fault, killed=True)
        works = [
            (again, command),
            (alone, ours("cp", f"{_BUCKET}/half/", f"{_BUCKET}/half-{turn}/")),
        ]
        for takes, work in works[:: 1 if turn % 2 else -1]:
            takes.append(measure(work))
        if _s3.count(f"killed-{turn}/") != count:
            raise SystemExit("the run that was killed was not brought to its end")
    resumed, other = median_of(again).seconds, median_of(alone).seconds
    return Row(
        f"resume after a kill at half of {count}", f"{resumed:.2f} s",
        f"the other half alone {other:.2f} s", resumed / other, "at most 1.2",
        resumed / other <= 1.2,
    )  # fmt: skip


def _in_turn(
    kind: str,
    commands: Mapping[str, Command],
    right: Callable[[str], bool] = lambda _: True,
    *,
    memory: bool = False,
) -> dict[str, Taken]:
    """The medians of each tool; another one goes first in every round."""
    takes: dict[str, list[Taken]] = {name: [] for name in commands}
    names = list(commands)
    for turn in range(_ROUNDS):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            to = f"{kind}-{_word(name)}-{turn}"
            takes[name].append(measure(commands[name](to), memory=memory))
            if not right(to):
                raise SystemExit(f"{name} did not copy everything to {to}")
    return {name: median_of(each) for name, each in takes.items()}


def _speeds(what: str, taken: Mapping[str, Taken], count: int, wanted: Wanted) -> list[Row]:
    mine = taken[_OURS].seconds
    rows = []
    for name, each in taken.items():
        if name == _OURS:
            continue
        ratio, least = each.seconds / mine, wanted.get(name)
        bar = "only told" if least is None else f"at least {least:g}"
        told = f"{name} {count / each.seconds:.0f}/s"
        met = least is None or ratio >= least
        rows.append(Row(what, f"{count / mine:.0f}/s", told, ratio, bar, met))
    return rows


def _always(command: list[str]) -> Command:
    return lambda _: command


def _word(name: str) -> str:
    return name.split()[0]


def main() -> None:
    show("Trees", run(asked_scale()))


if __name__ == "__main__":
    main()
