"""The S3 gateway against SeaweedFS, by the same boto3: both are servers of their own on loopback.

``python -m bench.gateway [SCALE]``: 1 puts, gets and copies 64 MiB and 1 GiB, lists 100,000 keys
and renames a folder of 100,000 objects. By itself SeaweedFS never waits for its disk, ours always
does; rows that say so have it sync each object's content too (its metadata it cannot).
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.servers.seaweedfs import S3Server, wait_for_disk

from bench import _s3
from bench._commands import peak_memory
from bench._gateway_server import (
    FILLED,
    ServedGateway,
    count_node_reads,
    filled_gateway,
    served_gateway,
)
from bench._prefix_rename import renames
from bench.table import Row, alternate, asked_scale, show
from calque.operator import Operator
from calque.values import GIB, KIB, MIB

_ROUNDS = 3
_SMALL = 200
_PAGES = 100
_FEWEST_PARTS = 24 * MIB
"""Less than this boto3 does not copy in parts."""


def run(scale: float = 1.0) -> list[Row]:
    """All rows; both servers are there for all that compares them."""
    medium = max(1, int(64 * scale)) * MIB
    large = max(_FEWEST_PARTS, int(GIB * scale) // MIB * MIB)
    keys = max(_PAGES, int(100_000 * scale) // _PAGES * _PAGES)
    base = Path(tempfile.mkdtemp(prefix="calque-bench-s3-", dir=os.environ.get("BENCH_DIR")))
    try:
        with _s3.bench_server() as weed, served_gateway(base / "served") as served:
            ours, theirs = served.client(), _client_of(weed)
            ours.create_bucket(Bucket=_s3.BUCKET)
            small = max(5, int(_SMALL * scale))
            rows = [
                *whole_objects(ours, theirs, medium),
                *small_objects(ours, theirs, small),
                memory(served, ours, base, medium, large),
            ]
            wait_for_disk(weed)
            rows += synced_puts(ours, theirs, small)
        with filled_gateway(base / "filled", _s3.BUCKET, keys) as served:
            rows.append(pages(served, keys))
        return [*rows, multipart_copy(base, large), *renames(base, keys)]
    finally:
        shutil.rmtree(base)


def _client_of(server: S3Server) -> Any:
    import boto3

    return boto3.client("s3", endpoint_url=server.endpoint)


def whole_objects(ours: Any, theirs: Any, size: int) -> list[Row]:
    """One object put, got and copied."""
    body = os.urandom(size)
    for client in (ours, theirs):
        client.put_object(Bucket=_s3.BUCKET, Key="from", Body=body)
    return [
        _faster(f"{verb} of {size // MIB} MiB", ours, theirs, work, least)
        for verb, work, least in (
            ("CopyObject", _copy, 20.0),
            ("put", lambda client: _put(client, "put", body), 1.5),
            ("get", lambda client: _get(client, "from", size), 1.0),
        )
    ]


def small_objects(ours: Any, theirs: Any, count: int) -> list[Row]:
    """Objects of 1 KiB, one after the other."""
    body = os.urandom(KIB)

    def put(client: Any) -> None:
        for number in range(count):
            _put(client, f"small/{number}", body)

    def get(client: Any) -> None:
        for number in range(count):
            _get(client, f"small/{number}", KIB)

    return [
        _faster(f"{count} {verb} of 1 KiB", ours, theirs, work, 1.0)
        for verb, work in (("puts", put), ("gets", get))
    ]


def synced_puts(ours: Any, theirs: Any, count: int) -> list[Row]:
    """Small objects one after the other, where both sides wait for the disk."""
    rows = []
    for size in (KIB, 64 * KIB):
        body = os.urandom(size)

        def put(client: Any, body: bytes = body) -> None:
            for number in range(count):
                _put(client, f"synced/{len(body)}/{number}", body)

        what = f"{count} puts of {size // KIB} KiB, both wait for the disk"
        rows.append(_faster(what, ours, theirs, put, 1.0))
    return rows


def _faster(what: str, ours: Any, theirs: Any, work: Callable[[Any], object], least: float) -> Row:
    work(ours)  # neither side's first time is measured
    work(theirs)
    mine, peer = alternate(_ROUNDS, lambda: work(ours), lambda: work(theirs))
    told = f"SeaweedFS {peer * 1e3:.1f} ms"
    ratio = peer / mine
    return Row(what, f"{mine * 1e3:.1f} ms", told, ratio, f"at least {least:g}", ratio >= least)


_targets = itertools.count()


def _copy(client: Any) -> None:
    """To a name of its own each time: nothing is replaced, and nothing has to be taken away."""
    source = {"Bucket": _s3.BUCKET, "Key": "from"}
    client.copy_object(Bucket=_s3.BUCKET, Key=f"to/{next(_targets)}", CopySource=source)


def _put(client: Any, key: str, body: bytes) -> None:
    client.put_object(Bucket=_s3.BUCKET, Key=key, Body=body)


def _get(client: Any, key: str, size: int) -> None:
    body = client.get_object(Bucket=_s3.BUCKET, Key=key)["Body"]
    got = sum(map(len, body.iter_chunks(MIB)))
    if got != size:
        raise SystemExit(f"{key} has {got} bytes and not {size}")


def memory(served: ServedGateway, client: Any, base: Path, medium: int, large: int) -> Row:
    """What the server has held at most after objects of one size, and after a far larger one.

    The smaller were put and got before, several times.
    """
    before = peak_memory(served.pid)
    source = base / "large"
    _write_random(source, large)
    with open(source, "rb") as body:
        client.put_object(Bucket=_s3.BUCKET, Key="large", Body=body)
    source.unlink()
    _get(client, "large", large)
    client.delete_object(Bucket=_s3.BUCKET, Key="large")
    after = peak_memory(served.pid)
    return Row(
        f"peak memory of the server, put and get of {large // MIB} MiB", f"{after / MIB:.0f} MiB",
        f"of {medium // MIB} MiB {before / MIB:.0f} MiB", after / before, "at most 1.2",
        after / before <= 1.2,
    )  # fmt: skip


def pages(served: ServedGateway, keys: int) -> Row:
    """A filled folder listed through S3 in a hundred pages, against one walk by the own client.

    Something is written before each, so that neither finds a listing that an earlier round left.
    """

    def in_pages() -> None:
        client.put_object(Bucket=_s3.BUCKET, Key="changed", Body=b"")
        options = {**served.service_options, "page_size": keys // _PAGES}
        with Operator.from_uri(f"s3://{_s3.BUCKET}", **options) as op:
            _expect(keys, sum(1 for _ in op.list(FILLED)))

    def walk() -> None:
        client.put_object(Bucket=_s3.BUCKET, Key="changed", Body=b"")
        with served.project() as project:
            _expect(keys, sum(1 for _ in project.list_objects(_s3.BUCKET, FILLED)))

    client = served.client()
    paged, walked = alternate(_ROUNDS, in_pages, walk)
    return Row(
        f"{_PAGES} pages of {keys // _PAGES:,} keys", f"{paged:.2f} s", f"one walk {walked:.2f} s",
        paged / walked, "at most 3", paged / walked <= 3,
    )  # fmt: skip


def multipart_copy(base: Path, size: int) -> Row:
    """boto3's own copy in parts: bytes that are read from nodes, against what a get reads."""
    source = base / "source"
    _write_random(source, size)
    with count_node_reads(base / "counted") as (client, reads):
        client.create_bucket(Bucket=_s3.BUCKET)
        client.upload_file(str(source), _s3.BUCKET, "from")
        source.unlink()
        copied = 0
        for turn in range(_ROUNDS):
            reads.clear()
            client.copy({"Bucket": _s3.BUCKET, "Key": "from"}, _s3.BUCKET, f"to{turn}")
            copied = max(copied, sum(reads))
        reads.clear()
        _get(client, "to0", size)
        got = sum(reads)
        if got < size:  # else the count would prove nothing
            raise SystemExit(f"a get of {size} bytes read {got} from nodes")
        parts = client.head_object(Bucket=_s3.BUCKET, Key="to0")["ETag"].strip('"').partition("-")
        if not parts[2]:
            raise SystemExit("boto3 did not copy in parts")
    return Row(
        f"copy of {size // MIB} MiB by boto3 in {parts[2]} parts",
        f"{copied} bytes read from nodes",
        f"a get {got / MIB:.0f} MiB", copied / got, "0", copied == 0,
    )  # fmt: skip


def _write_random(path: Path, size: int) -> None:
    with open(path, "wb") as file:
        for block in _random_blocks(size):
            file.write(block)


def _random_blocks(size: int) -> Iterator[bytes]:
    for start in range(0, size, MIB):
        yield os.urandom(min(MIB, size - start))


def _expect(wanted: int, found: int) -> None:
    if found != wanted:
        raise SystemExit(f"a listing has {found} keys and not {wanted}")


def main() -> None:
    show("S3 gateway", run(asked_scale()))


if __name__ == "__main__":
    main()
