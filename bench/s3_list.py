"""Listing 100,000 keys against boto3's paginator, on one server.

``python -m bench.s3_list [SCALE]``. Filling the bucket takes longer than the measurement; the keys
are made by server-side copies of one object.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import boto3

from bench import _s3
from bench.table import Row, asked_scale, show
from calque.operator import Operator
from calque.operator.options import CopyOptions


def run(scale: float = 1.0) -> list[Row]:
    """Wall time and CPU of a whole listing."""
    keys = max(2000, int(100_000 * scale))
    with _s3.bench_server():
        _fill(keys)
        ours, our_cpu = _best(lambda: _ours(keys))
        theirs, their_cpu = _best(lambda: _boto(keys))
    what = f"listing {keys:,} keys"
    return [
        _row(what, ours, theirs, 0.7),
        _row(f"CPU of {what}", our_cpu, their_cpu, 0.4),
    ]


def _row(what: str, ours: float, theirs: float, most: float) -> Row:
    ratio = ours / theirs
    peer = f"boto3 {theirs:.2f} s"
    return Row(what, f"{ours:.2f} s", peer, ratio, f"under {most}", ratio < most)


def _fill(keys: int) -> None:
    op = Operator.from_uri(f"s3://{_s3.BUCKET}", key_order=False)
    op.write("seed", b"")
    seed, options, service = op.stat("seed"), CopyOptions(), op.service

    def copy(number: int) -> None:
        name = f"list/{number // 1000:03}/{number % 1000:03}-a-name-of-common-length.parquet"
        service.copy(seed, name, options, into=service).step()

    with op, ThreadPoolExecutor(_s3.CONCURRENT) as pool:
        for _ in pool.map(copy, range(keys)):
            pass


def _best(work: object) -> tuple[float, float]:
    """The best of three: the least disturbed."""
    assert callable(work)
    wall, cpu = [], []
    for _ in range(3):
        started, used = time.perf_counter(), time.process_time()
        work()
        wall.append(time.perf_counter() - started)
        cpu.append(time.process_time() - used)
    return min(wall), min(cpu)


def _ours(keys: int) -> None:
    with Operator.from_uri(f"s3://{_s3.BUCKET}", key_order=False) as op:
        found = sum(1 for entry in op.list("list/") if entry.etag is not None)
    assert found == keys, found


def _boto(keys: int) -> None:
    pages = boto3.client("s3").get_paginator("list_objects_v2")
    found = 0
    for page in pages.paginate(Bucket=_s3.BUCKET, Prefix="list/"):
        found += sum(1 for entry in page["Contents"] if entry["ETag"])
    assert found == keys, found


def main() -> None:
    show("S3 listings", run(asked_scale()))


if __name__ == "__main__":
    main()
