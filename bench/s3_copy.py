"""Server-side copies on one SeaweedFS against rclone, s5cmd, aws s3 and boto3.

``python -m bench.s3_copy [SCALE]``: 1 copies 2,000 small objects and one of 256 MiB.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import boto3
from tests.servers.proxy import Fault, FaultProxy
from tests.servers.seaweedfs import S3Server

from bench import _s3
from bench._gateway_server import served_gateway
from bench.table import Row, alternate, asked_scale, seconds, show
from calque.operator import Operator
from calque.operator.options import CopyOptions, Verify
from calque.values import MIB

_CHUNK = 8 * MIB
_ROUNDS = 3


def run(scale: float = 1.0) -> list[Row]:
    """All rows, on one server."""
    with _s3.bench_server() as server:
        return [
            *cpu(),
            *small_objects(server, max(50, int(2000 * scale))),
            *large_object(server, max(4, int(32 * scale))),
            joined_checksum(max(4, int(32 * scale))),
            delayed_parts(server),
        ]


def cpu() -> list[Row]:
    """CPU of one request: the same copy by us and by boto3, in turn."""
    op = Operator.from_uri(f"s3://{_s3.BUCKET}", key_order=False)
    op.write("cpu/from", b"x" * 1000)
    found, options, service = op.stat("cpu/from"), CopyOptions(), op.service
    client = boto3.client("s3")
    here = {"Bucket": _s3.BUCKET, "Key": "cpu/from"}

    def copy_ours() -> None:
        service.copy(found, "cpu/to", options, into=service).step()

    def copy_boto() -> None:
        client.copy_object(Bucket=_s3.BUCKET, Key="cpu/to", CopySource=here)

    def both_boto() -> None:
        client.head_object(**here)
        copy_boto()

    ours, boto = _cpu_of(copy_ours, copy_boto)
    whole, pair = _cpu_of(lambda: op.copy("cpu/from", "cpu/to"), both_boto)
    op.close()
    return [
        _cost("CPU of one copy request", ours, "boto3 copy_object", boto),
        _cost("CPU of copy() with its stat", whole, "boto3 head_object + copy_object", pair),
    ]


def _cpu_of(*works: Callable[[], object], times: int = 200) -> list[float]:
    taken: list[list[float]] = [[] for _ in works]
    for _ in range(_ROUNDS):
        for each, work in zip(taken, works, strict=True):
            started = time.process_time()
            for _ in range(times):
                work()
            each.append((time.process_time() - started) / times)
    return [statistics.median(each) for each in taken]


def _cost(what: str, ours: float, peer: str, theirs: float) -> Row:
    ratio = ours / theirs
    told = f"{peer} {theirs * 1e3:.2f} ms"
    return Row(what, f"{ours * 1e3:.2f} ms", told, ratio, "0.25 or less", ratio <= 0.25)


def small_objects(server: S3Server, count: int) -> list[Row]:
    """Many small objects, every tool with 16 requests at a time."""
    _s3.fill("small/", count, 1024)
    bucket, at = f"s3://{_s3.BUCKET}", server.endpoint
    taken = _taken(
        "many",
        {
            "calque": lambda to: _s3.ours("small", "small/", f"{to}/"),
            "s5cmd": lambda to: _s3.s5cmd(
                "cp", f"{bucket}/small/*", f"{bucket}/{to}/", endpoint=at
            ),
            "rclone": lambda to: _s3.rclone(
                "copy", f"W:{_s3.BUCKET}/small", f"W:{_s3.BUCKET}/{to}/",
                server=server, chunk=_CHUNK, endpoint=at,
            ),
            "aws s3 cp": lambda to: _s3.aws(
                "cp", "--recursive", "--quiet", f"{bucket}/small/", f"{bucket}/{to}/",
                chunk=_CHUNK, endpoint=at,
            ),
        },
        lambda to: _s3.count(f"{to}/") == count,
    )  # fmt: skip
    return _against(f"{count} small objects", taken, count, "/s")


def large_object(server: S3Server, parts: int) -> list[Row]:
    """One large object in parts of 8 MiB, 16 at a time.

    The peers compare no checksums, so neither do we in their rows. The last row says what SeaweedFS
    takes for one: asked for any, whole or of parts, it sends each part through itself and hashes it
    twice, where it otherwise moves what it stores as it is. The commit joins them in no time.
    """
    with Operator.from_uri(f"s3://{_s3.BUCKET}") as op:
        block = os.urandom(_CHUNK)
        op.write("large", (block for _ in range(parts)))
    at, size = server.endpoint, parts * _CHUNK
    taken = _taken(
        "one",
        {
            "calque": lambda to: _s3.ours("large", "large", to, str(_CHUNK), "size"),
            "comparing": lambda to: _s3.ours("large", "large", to, str(_CHUNK), "checksum"),
            "rclone": lambda to: _s3.rclone(
                "copyto", f"W:{_s3.BUCKET}/large", f"W:{_s3.BUCKET}/{to}",
                server=server, chunk=_CHUNK, endpoint=at,
            ),
            "aws s3 cp": lambda to: _s3.aws(
                "cp", "--quiet", f"s3://{_s3.BUCKET}/large", f"s3://{_s3.BUCKET}/{to}",
                chunk=_CHUNK, endpoint=at,
            ),
        },
        lambda to: _s3.size(to) == size,
    )  # fmt: skip
    comparing, ours = taken.pop("comparing"), taken["calque"]
    what = f"one object of {size / MIB:.0f} MiB in parts"
    cost = Row(
        f"{what}, its checksum compared by the server",
        f"{size / MIB / comparing:.0f} MiB/s",
        f"not compared {size / MIB / ours:.0f} MiB/s",
        ours / comparing,
        "only told",
        True,
    )
    return [*_against(what, taken, size / MIB, " MiB/s"), cost]


def _taken(
    kind: str, tools: dict[str, Callable[[str], list[str]]], right: Callable[[str], bool]
) -> dict[str, float]:
    """The median time of each tool, run in turn, without the time that it takes to start."""
    times: dict[str, list[float]] = {name: [] for name in tools}
    for turn in range(_ROUNDS):
        for name, command in tools.items():
            to = f"{kind}-{name.split()[0]}-{turn}"
            start = seconds(partial(_s3.run, _s3.start(name)))
            whole = seconds(partial(_s3.run, command(to)))
            times[name].append(max(whole - start, 0.001))
            if not right(to):
                raise SystemExit(f"{name} did not copy everything to {to}")
    return {name: statistics.median(each) for name, each in times.items()}


def _against(what: str, taken: dict[str, float], amount: float, unit: str) -> list[Row]:
    speed = {name: amount / each for name, each in taken.items()}
    ours = speed.pop("calque")
    return [
        Row(
            what,
            f"{ours:.0f}{unit}",
            f"{name} {theirs:.0f}{unit}",
            ours / theirs,
            "over 1",
            ours > theirs,
        )
        for name, theirs in speed.items()
    ]


def joined_checksum(parts: int) -> Row:
    """The same comparison where the server keeps the checksums of what it stores, as Amazon does:
    our own gateway joins those of the parts."""
    with (
        TemporaryDirectory() as folder,
        served_gateway(Path(folder) / "store") as served,
        Operator.from_uri("s3://bench", threshold=_CHUNK, **served.service_options) as op,
    ):
        served.client().create_bucket(Bucket="bench")
        block = os.urandom(_CHUNK)
        op.write("large", (block for _ in range(parts)))

        def copy(verify: Verify) -> None:
            op.copy("large", "to", concurrent=_s3.CONCURRENT, chunk=_CHUNK, verify=verify)

        compared, plain = alternate(7, lambda: copy("checksum"), lambda: copy("size"))
    return Row(
        f"one object of {parts * 8} MiB in parts on our gateway, its checksum compared",
        f"{compared * 1e3:.0f} ms",
        f"not compared {plain * 1e3:.0f} ms",
        plain / compared,
        "0.8 or more",
        plain / compared >= 0.8,
    )


def delayed_parts(server: S3Server, *, parts: int = 32, latency: float = 2.0) -> Row:
    """Every part is delayed on its way: what the delay adds to the copy, against
    parts x latency / concurrency. The server's own work is the same copy without delay, in turn;
    no checksum is asked for, whose making takes this server longer when all come at once."""
    chunk = 5 * MIB
    with Operator.from_uri(f"s3://{_s3.BUCKET}") as op:
        block = os.urandom(chunk)
        op.write("delayed", (block for _ in range(parts)))
    with (
        FaultProxy(server.endpoint) as proxy,
        Operator.from_uri(f"s3://{_s3.BUCKET}", endpoint_url=proxy.endpoint, threshold=chunk) as op,
    ):

        def copy() -> None:
            proxy.reset()
            op.copy("delayed", "to", concurrent=_s3.CONCURRENT, chunk=chunk, verify="size")

        def copy_late() -> None:
            proxy.reset()
            proxy.add(Fault(header="x-amz-copy-source", times=None, delay=latency))
            op.copy("delayed", "to", concurrent=_s3.CONCURRENT, chunk=chunk, verify="size")

        own, taken = alternate(_ROUNDS, copy, copy_late)
    ideal = parts * latency / _s3.CONCURRENT
    ratio = (taken - own) / ideal
    what = f"{parts} parts delayed by {latency:g} s, {_s3.CONCURRENT} at a time"
    ours = f"{taken:.2f} s, {own:.2f} s without delay"
    return Row(what, ours, f"the limit {ideal:.2f} s", ratio, "1.1 or less", ratio <= 1.1)


def main() -> None:
    show("S3 copies", run(asked_scale()))


if __name__ == "__main__":
    main()
