"""What a target loses is kept first, or not lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from calque.errors import IsSameFile
from calque.operator import Operator
from calque.transfer.api import sync_tree
from tests.servers.seaweedfs import S3Server
from tests.transfer.conftest import MakeTree, files_of, objects_of, s3_options

OLD = {"same": b"1", "changed": b"old", "gone/deep": b"bye"}
NEW = {"same": b"1", "changed": b"new!", "fresh": b"2"}
LOST = {"changed": b"old", "gone/deep": b"bye"}


def test_files_are_kept(make_tree: MakeTree, tmp_path: Path) -> None:
    """Overwritten and deleted ones, in the same layout; what stays is not in it."""
    source, target = make_tree("source", NEW), make_tree("target", OLD)
    inode = (target / "gone/deep").stat().st_ino
    report = sync_tree(f"{source}/", target, delete=True, backup_to=f"{tmp_path}/kept/")
    assert report.ok, report.problems
    assert files_of(target) == NEW
    assert files_of(tmp_path / "kept") == LOST
    assert (tmp_path / "kept/gone/deep").stat().st_ino == inode


def test_objects_are_kept_inside_their_service(
    make_tree: MakeTree, s3: Operator, tree_bucket: S3Server
) -> None:
    """Beside the target in one bucket; inside it only where it is excluded."""
    options = s3_options(tree_bucket)
    source, root = make_tree("source", NEW), s3.location("")  # older than what is there
    for path, content in OLD.items():
        s3.write(f"t/{path}", content)
    with pytest.raises(IsSameFile):
        sync_tree(f"{source}/", f"{root}t/", backup_to=f"{root}t/kept/", target_options=options)
    report = sync_tree(
        f"{source}/",
        f"{root}t/",
        delete=True,
        backup_to=f"{root}t/kept/",
        exclude=["/kept/"],
        target_options=options,
    )
    assert report.ok, report.problems
    kept = {f"t/kept/{path}": content for path, content in LOST.items()}
    assert objects_of(s3) == {**{f"t/{path}": each for path, each in NEW.items()}, **kept}


def test_what_cannot_be_kept_stays(make_tree: MakeTree, tmp_path: Path) -> None:
    """A backup that fails: nothing is overwritten, nothing deleted, each is told."""
    source, target = make_tree("source", NEW), make_tree("target", OLD)
    kept = make_tree("kept", {"gone": b"a file where a folder is needed"})
    os.mkdir(kept / "changed")
    report = sync_tree(f"{source}/", target, delete=True, backup_to=str(kept))
    assert [row.path for row in report.problems] == ["changed"]
    assert report.no_deletes
    assert files_of(target) == {**OLD, "fresh": b"2"}
    os.rmdir(kept / "changed")
    report = sync_tree(f"{source}/", target, delete=True, backup_to=str(kept))
    assert [row.path for row in report.problems] == ["gone/deep"]
    assert files_of(target) == {**NEW, "gone/deep": b"bye"}
