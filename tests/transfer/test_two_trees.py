"""One tree that goes by two names is not moved onto itself: nothing would be left of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from calque import move_tree
from calque.errors import IsSameFile
from calque.operator import Operator
from tests.gateway.world import REGION, gateway_world
from tests.servers.rclone import rclone
from tests.transfer.conftest import files_of, objects_of

TREE = {"a": b"1", "deep/er/b": b"22", "c d": b"333"}


@contextmanager
def _served_folder(tmp_path: Path) -> Iterator[tuple[Operator, Operator]]:
    """A folder, and the bucket that a server makes of it."""
    with rclone("bucket", data=tmp_path / "data") as server:
        bucket = Operator.from_uri(
            "s3://bucket",
            endpoint_url=server.endpoint,
            access_key_id=server.access_key,
            secret_access_key=server.secret_key,
            region=server.region,
            key_order=False,
            checksum="md5",
        )
        yield Operator.from_uri(tmp_path / "data" / "bucket"), bucket


@contextmanager
def _store_and_gateway(tmp_path: Path) -> Iterator[tuple[Operator, Operator]]:
    """A bucket of a store, and the same behind its gateway."""
    with gateway_world(tmp_path / "data") as world:
        world.project.create_bucket("bucket")
        bucket = Operator.from_uri(
            "s3://bucket",
            endpoint_url=world.url,
            region=REGION,
            access_key_id=world.key.access_key_id,
            secret_access_key=world.key.secret_access_key,
        )
        yield Operator.from_uri("calque://bucket", project=str(tmp_path / "data")), bucket


@pytest.mark.parametrize("two_names", [_served_folder, _store_and_gateway])
@pytest.mark.parametrize("turned", [False, True], ids=["there", "and back"])
def test_a_tree_that_two_services_show(two_names: object, turned: bool, tmp_path: Path) -> None:
    """Both show the same files: the run or every row of it says so, and no file is gone."""
    with two_names(tmp_path) as pair:  # type: ignore[operator]
        source, target = reversed(pair) if turned else pair
        for path, data in TREE.items():
            source.write(path, data)
        try:
            report = move_tree(source, target)
        except IsSameFile:
            pass  # a store and its gateway tell the same of each object, so nothing was begun
        else:
            assert {row.error for row in report.problems} == {"IsSameFile"}
            assert len(report.problems) == len(TREE)
        assert objects_of(source) == objects_of(target) == TREE


def test_two_trees_of_two_services(tmp_path: Path) -> None:
    """What is moved for good leaves its source, and nothing of the look stays in the target."""
    with _served_folder(tmp_path) as (_, bucket):
        source = tmp_path / "elsewhere"
        for path, data in TREE.items():
            (source / path).parent.mkdir(parents=True, exist_ok=True)
            (source / path).write_bytes(data)
        assert move_tree(f"{source}/", bucket).ok
        assert objects_of(bucket) == TREE
        assert files_of(source) == {}
