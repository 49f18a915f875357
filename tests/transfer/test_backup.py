"""What a target loses is kept first, or not lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from calque.errors import IsSameFile
from calque.operator import Operator
from calque.transfer.api import PreparedRun, sync_tree
from calque.transfer.request.options import TreeOptions
from calque.transfer.request.tree_request import TreeRequest
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


def test_a_file_is_kept_by_the_name_that_it_has_at_the_target(
    make_tree: MakeTree, tmp_path: Path
) -> None:
    """Where names fall together one has another there: by its own it would take the place of that
    which the first is kept by."""
    source, target = make_tree("source", {"A": b"1", "a": b"2"}), tmp_path / "target"
    chosen = {"fold_case": True, "on_collision": "rename", "compare": "always"}
    assert sync_tree(f"{source}/", target, **chosen).ok  # type: ignore[arg-type]
    old = files_of(target)
    make_tree("source", {"A": b"new", "a": b"other"})
    assert sync_tree(f"{source}/", target, backup_to=f"{tmp_path}/kept/", **chosen).ok  # type: ignore[arg-type]
    assert files_of(tmp_path / "kept") == old


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


def test_links_are_kept_as_links(make_tree: MakeTree, tmp_path: Path) -> None:
    """One that goes, one that another takes the place of: their texts, not what they lead to."""
    source, target = make_tree("source", {"a": b"1"}), make_tree("target", {"a": b"1"})
    (source / "changed").symlink_to("a")
    (target / "changed").symlink_to("nowhere")
    (target / "gone").symlink_to("a")
    for link in (target / "changed", target / "gone"):
        os.utime(link, (1, 1), follow_symlinks=False)
    report = sync_tree(
        f"{source}/", target, delete=True, links="keep", backup_to=f"{tmp_path}/kept/"
    )
    assert report.ok, report.problems
    assert os.readlink(target / "changed") == "a"
    assert not (target / "gone").is_symlink()
    kept = {name: os.readlink(tmp_path / "kept" / name) for name in os.listdir(tmp_path / "kept")}
    assert kept == {"changed": "nowhere", "gone": "a"}


@pytest.mark.parametrize("service", ["fs", "s3"])
def test_what_is_gone_by_itself_needs_no_backup(
    make_tree: MakeTree, tmp_path: Path, request: pytest.FixtureRequest, service: str
) -> None:
    """Somebody else deletes what is about to be deleted: no failure, as without a backup."""
    source = make_tree("source", {"stays": b"1"})
    if service == "fs":
        target, kept = Operator.from_uri(make_tree("target", {})), f"{tmp_path}/kept/"
    else:
        target, kept = request.getfixturevalue("s3"), f"{tmp_path}/kept/"
    for path in ("stays", "gone"):
        target.write(path, b"1")

    def meddle(count: int, size: int, names: object) -> bool:
        target.delete("gone")
        return True

    options = TreeOptions(delete=True, backup_to=kept)
    asked = TreeRequest(kind="sync", sources=[f"{source}/"], target=target, options=options)
    report = PreparedRun(asked, confirm=meddle).run()
    assert report.ok, report.problems
    assert objects_of(target) == {"stays": b"1"}
