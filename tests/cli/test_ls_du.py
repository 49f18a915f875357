"""``calque ls`` of buckets and patterns, and ``calque du``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Calque
from tests.operator.services.s3.server import make_bucket
from tests.servers.seaweedfs import S3Server


@pytest.fixture
def tree(folder: Path) -> Path:
    for name, content in {"a/b/x.csv": "12", "a/y.csv": "345", "c/z.txt": "6", "top": ""}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


def test_ls_patterns(calque: Calque, tree: Path) -> None:
    """A star stays within a folder, two cross; nothing that matches is an error."""
    assert calque("ls", "a/**/*.csv").stdout.split() == ["b/x.csv", "y.csv"]
    assert calque("ls", "a/*.csv").stdout.split() == ["y.csv"]
    assert calque("ls", "-r", "{a,c}").stdout.split() == ["a/b/x.csv", "a/y.csv", "c/z.txt"]
    missing = calque("ls", "*.nothing")
    assert missing.returncode == 1
    assert "nothing matches" in missing.stderr


def test_ls_of_a_file_that_looks_like_a_pattern(calque: Calque, folder: Path) -> None:
    """A local file of just that name is meant."""
    (folder / "a*").write_text("x")
    (folder / "ab").write_text("x")
    assert "ab" not in calque("ls", "a*").stdout


def test_du(calque: Calque, tree: Path) -> None:
    """A line a folder, the sum last; filters count what they take, the first rule first."""
    told = json.loads(calque("du", "--json").stdout)
    names = [(Path(each["location"]).name, each["objects"], each["bytes"]) for each in told]
    assert names == [("a", 2, 5), ("c", 1, 1), (tree.name, 4, 6)]
    only = calque("du", "-d", "0", "-b", "--include", "*.csv", "--exclude", "*").stdout.split()
    assert only[:2] == ["5", "2"]
    none = calque("du", "-d", "0", "-b", "--exclude", "*", "--include=*.csv").stdout.split()
    assert none[:2] == ["0", "0"]
    assert calque("du", "-d0", "-b", "--min-size", "2", "--newer-than", "1h").stdout.split()[0] == (
        "5"
    )
    assert calque("du", "a/y.csv", "-b").stdout.split()[:2] == ["3", "1"]
    assert calque("du", "nowhere").returncode == 1
    assert calque("du", "--newer-than", "yesterday").returncode == 2


def test_ls_buckets(calque: Calque, seaweed: S3Server, environment: dict[str, str]) -> None:
    """``s3://`` alone lists the buckets, for people and for programs."""
    make_bucket(seaweed, "listed-bucket")
    environment |= {**seaweed.environment, "AWS_ENDPOINT_URL_S3": seaweed.endpoint}
    assert "listed-bucket" in calque("ls", "s3://").stdout.split()
    names = [each["name"] for each in json.loads(calque("ls", "s3://", "--json").stdout)]
    assert "listed-bucket" in names
