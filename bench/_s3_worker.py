"""Our side of the S3 benchmarks as a process: ``small FROM TO``, ``large FROM TO CHUNK VERIFY``,
or ``start``, which opens a bucket and ends."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

from bench._s3 import BUCKET, CONCURRENT
from calque.operator import Operator
from calque.operator.options import CopyOptions, Verify
from calque.values import Metadata


def small(source: str, target: str) -> None:
    """Copy every object of a prefix, by what its listing says of it."""
    op = Operator.from_uri(f"s3://{BUCKET}", key_order=False)
    options = CopyOptions()
    service = op.service

    def copy(entry: Metadata) -> None:
        driver = service.copy(entry, target + entry.path[len(source) :], options, into=service)
        while driver.step() is not None:
            pass

    with op, ThreadPoolExecutor(CONCURRENT) as pool:
        for _ in pool.map(copy, op.list(source)):
            pass


def large(source: str, target: str, chunk: str, verify: Verify) -> None:
    """Copy one object in parts."""
    with Operator.from_uri(f"s3://{BUCKET}", threshold=int(chunk)) as op:
        op.copy(source, target, concurrent=CONCURRENT, chunk=int(chunk), verify=verify)


if __name__ == "__main__":
    work, *words = sys.argv[1:]
    if work == "start":
        small("no/such/prefix/", "x/")
    elif work == "small":
        small(*words)
    else:
        large(*words)  # type: ignore[arg-type]
