"""Trees in a folder of their own, and what calque remembers of them beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from calque.operator import Operator
from tests.operator.services.s3.server import make_bucket
from tests.servers.seaweedfs import S3Server

Tree = dict[str, bytes]
MakeTree = Callable[[str, Tree], Path]
_numbers = count()


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What outlives a run lies here."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def make_tree(tmp_path: Path) -> MakeTree:
    """Write files below a folder of the test."""

    def make(name: str, files: Tree) -> Path:
        root = tmp_path / name
        root.mkdir(parents=True, exist_ok=True)
        for path, content in files.items():
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        return root

    return make


@pytest.fixture(scope="session")
def tree_bucket(seaweed: S3Server) -> S3Server:
    """A server with the bucket ``trees``."""
    make_bucket(seaweed, "trees")
    return seaweed


@pytest.fixture
def s3(tree_bucket: S3Server) -> Iterator[Operator]:
    """A root of its own in the bucket, on a server that lists folder by folder."""
    with Operator.from_uri(f"s3://trees/t{next(_numbers)}", **s3_options(tree_bucket)) as operator:
        yield operator


def s3_options(server: S3Server) -> dict[str, object]:
    """How the server is reached."""
    return {
        "endpoint_url": server.endpoint,
        "region": server.region,
        "access_key_id": server.access_key,
        "secret_access_key": server.secret_key,
        "key_order": False,
    }


def files_of(root: Path) -> Tree:
    """All files below a folder."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def objects_of(operator: Operator) -> Tree:
    """All objects below an operator's root."""
    return {entry.path: operator.read(entry.path) for entry in operator.list() if not entry.is_dir}
