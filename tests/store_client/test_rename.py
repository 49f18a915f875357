"""Moves through the Operator and the command line: one transaction of the store, or none."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from calque.errors import ConditionNotMatch, IsSameFile, NotFound, PermissionDenied, Unsupported
from calque.operator import Operator
from calque.operator.service import Renaming
from calque.store.embedded import EmbeddedStore
from calque.store.open_project import open_project
from calque.store.upkeep.fsck import check_store
from calque.values import Metadata
from tests.store_client.test_store_commands import calque

CONTENT = os.urandom(70_000)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A store with two buckets; whole in the end."""
    place = tmp_path / "data"
    with open_project(place) as project:
        project.create_bucket("photos")
        project.create_bucket("archive")
    yield place
    store = EmbeddedStore.open(place)
    assert check_store(store, young=True) == []
    store.close()


def rename(
    op: Operator, source: Metadata, into: Operator, target: str, *, if_not_exists: bool = False
) -> Metadata:
    assert isinstance(op.service, Renaming)
    return op.service.rename(source, target, if_not_exists=if_not_exists, into=into.service)


def test_between_roots_and_buckets(folder: Path) -> None:
    """The object keeps its identity, time and metadata: nothing was copied."""
    with (
        Operator.from_uri("calque://photos/2025", project=str(folder)) as here,
        Operator.from_uri("calque://archive/old", project=str(folder)) as there,
    ):
        here.write("a", CONTENT, content_type="image/png", user={"k": "v"})
        before = here.stat("a")
        moved = rename(here, before, there, "b/c")
        assert moved == there.stat("b/c")
        assert (moved.etag, moved.last_modified) == (before.etag, before.last_modified)
        assert (moved.content_type, dict(moved.user)) == ("image/png", {"k": "v"})
        assert there.read("b/c") == CONTENT
        assert not here.exists("a")


def test_conditions(folder: Path) -> None:
    """A taken name, a changed source and the same name are refused; nothing is lost."""
    with Operator.from_uri("calque://photos", project=str(folder)) as op:
        op.write("a", CONTENT)
        op.write("b", b"b")
        with pytest.raises(ConditionNotMatch, match="exists"):
            rename(op, op.stat("a"), op, "b", if_not_exists=True)
        with pytest.raises(IsSameFile):
            rename(op, op.stat("a"), op, "a")
        old = op.stat("a")
        op.write("a", b"changed")
        with pytest.raises(ConditionNotMatch):
            rename(op, old, op, "c")
        assert {entry.path: op.read(entry.path) for entry in op.list()} == {
            "a": b"changed",
            "b": b"b",
        }
        rename(op, op.stat("a"), op, "b")
        assert [entry.path for entry in op.list()] == ["b"]
        assert op.read("b") == b"changed"


def test_what_it_cannot_do(folder: Path, tmp_path: Path) -> None:
    """Another project, another kind of storage: Unsupported, so that others copy and delete."""
    with open_project(tmp_path / "other") as project:
        project.create_bucket("photos")
    with (
        Operator.from_uri("calque://photos", project=str(folder)) as op,
        Operator.from_uri("calque://photos", project=str(tmp_path / "other")) as other,
        Operator.from_uri(str(tmp_path)) as files,
    ):
        op.write("a", CONTENT)
        for into in (other, files):
            with pytest.raises(Unsupported):
                rename(op, op.stat("a"), into, "a")
        assert op.read("a") == CONTENT


def test_without_the_right_to_delete(folder: Path) -> None:
    """A grant that may read and write may not move: the source stays."""
    with open_project(folder) as project:
        grant = project.access.restrict(delete=False)
        project.upload("photos", "a", CONTENT)
    with Operator.from_uri("calque://photos", project=str(folder), access=grant.serialize()) as op:
        with pytest.raises(PermissionDenied):
            rename(op, op.stat("a"), op, "b")
        assert op.read("a") == CONTENT


def test_calque_mv(folder: Path, tmp_path: Path) -> None:
    """`calque mv` between two buckets renames; to another project it copies and deletes."""
    with open_project(folder) as project:
        project.upload("photos", "2025/a", CONTENT)
        etag = project.stat("photos", "2025/a").etag
    where = {"CALQUE_PROJECT": str(folder)}
    done = calque("mv", "calque://photos/2025/a", "calque://archive/x/", "--json", **where)
    assert json.loads(done.stdout)["route"] == "renamed", done.stderr
    with open_project(folder) as project:
        assert project.stat("archive", "x/a").etag == etag
        with pytest.raises(NotFound):
            project.stat("photos", "2025/a")
    assert calque("mv", "calque://archive/x/a", tmp_path / "out", **where).returncode == 0
    assert (tmp_path / "out").read_bytes() == CONTENT
    with open_project(folder) as project:
        assert list(project.list_objects("archive")) == []


def test_a_prefix_at_once(folder: Path) -> None:
    """The Operator moves and copies all below a prefix in one step, between roots and buckets."""
    with (
        Operator.from_uri("calque://photos/2025", project=str(folder)) as here,
        Operator.from_uri("calque://archive/old", project=str(folder)) as there,
    ):
        for name in ("in/a", "in/b/c", "in-between"):
            here.write(name, CONTENT, content_type="image/png")
        told: list[tuple[int, int]] = []
        assert here.copy_prefix("in/", "x/", into=there, progress=lambda *n: told.append(n)) == 2
        assert told == [(2, 2 * len(CONTENT))]
        with pytest.raises(ConditionNotMatch, match=r"archive/old/x/(a|b/c) exists"):
            here.move_prefix("in/", "x/", into=there)
        assert here.move_prefix("in/", "x/", into=there, overwrite=True) == 2
        assert [entry.path for entry in here.list("")] == ["in-between"]
        assert [entry.path for entry in there.list("")] == ["x/a", "x/b/c"]
        assert there.stat("x/b/c").content_type == "image/png"
        assert here.move_prefix("", "y/", into=there) == 1
        with pytest.raises(NotFound, match="nothing below"):
            here.move_prefix("in/", "x/", into=there)
    with (
        Operator.from_uri("memory://") as memory,
        pytest.raises(Unsupported, match="in one step"),
    ):
        memory.move_prefix("a/", "b/")


def test_a_prefix_by_command(folder: Path) -> None:
    """Progress and the end are told beside the output; what stands in the way is named."""
    with open_project(folder) as project:
        for name in ("a", "b/c"):
            project.upload("photos", f"2025/{name}", CONTENT)
    where = ("--project", folder)
    done = calque("store", "copy-prefix", "photos/2025/", "archive/p/", *where)
    assert done.returncode == 0, done.stderr
    told = done.stderr.decode().splitlines()
    assert told == [
        "prepared 2 objects, 136.7 KiB",
        "copied 2 objects from photos/2025/ to archive/p/",
    ]
    refused = calque("store", "move-prefix", "photos/2025/", "archive/p/", *where)
    assert refused.returncode != 0
    assert b"exists already" in refused.stderr
    moved = calque(
        "store", "move-prefix", "calque://photos/2025/", "archive/p/", "--overwrite", "--json",
        *where,
    )  # fmt: skip
    assert json.loads(moved.stdout)["objects"] == 2
    half = calque("store", "move-prefix", "photos/2025", "archive/", *where)
    assert half.returncode != 0
    assert b"ends in" in half.stderr
