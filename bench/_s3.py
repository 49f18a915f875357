"""What the S3 benchmarks share: one SeaweedFS, its objects, and the peers' commands."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tests.servers.seaweedfs import S3Server, seaweedfs

from calque.operator import Operator

BUCKET = "bench"
CONCURRENT = 16


@contextmanager
def bench_server() -> Iterator[S3Server]:
    """A SeaweedFS with one bucket, and the environment set for it, for us and for every peer."""
    import boto3

    with seaweedfs(volume_limit_mb=1024) as server:
        os.environ.update(server.environment)
        boto3.client("s3").create_bucket(Bucket=BUCKET)
        yield server


def fill(prefix: str, count: int, size: int) -> None:
    """Write so many objects of a size."""
    body = os.urandom(size)
    op = Operator.from_uri(f"s3://{BUCKET}")
    with op, ThreadPoolExecutor(CONCURRENT) as pool:
        list(pool.map(lambda n: op.write(f"{prefix}{n:06}", body), range(count)))


def binary(name: str) -> str | None:
    """A peer: beside this Python, in .cache/peers, or on the path."""
    private = Path(__file__).parent.parent / ".cache" / "peers" / "bin"
    for folder in (Path(sysconfig.get_path("scripts")), private):
        if (folder / name).exists():
            return str(folder / name)
    return shutil.which(name)


def aws(*words: str, chunk: int, endpoint: str) -> list[str]:
    """``aws s3``, told by its configuration file to be as concurrent as everyone else."""
    config = Path(tempfile.gettempdir()) / f"calque-bench-aws-{os.getpid()}"
    config.write_text(
        f"[default]\nregion = us-east-1\ns3 =\n  max_concurrent_requests = {CONCURRENT}\n"
        f"  multipart_chunksize = {chunk}\n  multipart_threshold = {chunk}\n"
    )
    atexit.register(config.unlink, missing_ok=True)
    command = binary("aws") or "aws"
    return ["env", f"AWS_CONFIG_FILE={config}", command, "--endpoint-url", endpoint, "s3", *words]


def s5cmd(*words: str, endpoint: str) -> list[str]:
    command = binary("s5cmd") or "s5cmd"
    return [command, "--endpoint-url", endpoint, "--numworkers", str(CONCURRENT), *words]


def rclone(
    *words: str, server: S3Server, chunk: int, endpoint: str, compares: bool = False
) -> list[str]:
    """rclone without a look at the bucket first, and at the target only where it ``compares``:
    nobody else does that here."""
    settings = {
        "RCLONE_CONFIG_W_TYPE": "s3",
        "RCLONE_CONFIG_W_PROVIDER": "Other",
        "RCLONE_CONFIG_W_ENDPOINT": endpoint,
        "RCLONE_CONFIG_W_ACCESS_KEY_ID": server.access_key,
        "RCLONE_CONFIG_W_SECRET_ACCESS_KEY": server.secret_key,
        "RCLONE_CONFIG_W_REGION": server.region,
        "RCLONE_CONFIG": "/dev/null",
    }
    flags = [
        f"--transfers={CONCURRENT}",
        f"--checkers={CONCURRENT}",
        *([] if compares else ["--no-check-dest"]),
        "--s3-no-check-bucket",
        f"--s3-copy-cutoff={chunk}B",
        f"--s3-chunk-size={chunk}B",
        f"--s3-upload-concurrency={CONCURRENT}",
    ]
    given = [f"{name}={value}" for name, value in settings.items()]
    return ["env", *given, binary("rclone") or "rclone", *words, *flags]


def run(command: list[str]) -> None:
    """Run a peer; a failure stops the benchmark and shows what it said."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise SystemExit(f"{command}:\n{done.stdout[-2000:]}")


def ours(*words: str) -> list[str]:
    """Ourselves as a process of our own, its start counted like everybody's."""
    return [sys.executable, "-m", "bench._s3_worker", *words]


def start(name: str) -> list[str]:
    """The least that a tool does: what it costs to be there at all."""
    if name in ("calque", "comparing"):
        return ours("start")
    word = "--version" if name.startswith("aws") else "version"
    return [binary(name.split()[0]) or name, word]


def size(path: str) -> int:
    """The size of an object."""
    with Operator.from_uri(f"s3://{BUCKET}") as op:
        return op.stat(path).size


def count(prefix: str) -> int:
    """How many objects stand under a prefix."""
    with Operator.from_uri(f"s3://{BUCKET}", key_order=False) as op:
        return sum(1 for _ in op.list(prefix))
