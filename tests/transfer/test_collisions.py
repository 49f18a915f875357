"""Names that differ in the case of letters only: neither overwrites the other."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from calque.errors import Unsupported
from calque.operator import Operator
from calque.transfer.api import copy_tree, move_tree, sync_tree
from calque.transfer.model import Row
from calque.transfer.plan.collisions import folds_case, give_name
from calque.transfer.plan.side import Side
from tests.transfer.conftest import MakeTree, files_of, objects_of

FILES = {"Read.me": b"1", "read.me": b"2", "Dir/x": b"3", "dir/X": b"4", "dir/y": b"5"}


@pytest.mark.parametrize("dry_run", [False, True])
def test_both_are_refused_and_the_rest_goes_on(
    make_tree: MakeTree, tmp_path: Path, dry_run: bool
) -> None:
    """Each names the other; folders of two cases are no collision by themselves."""
    source = make_tree("source", FILES)
    report = copy_tree(f"{source}/", f"{tmp_path}/target/", fold_case=True, dry_run=dry_run)
    refused = {row.path: row.why for row in report.problems}
    assert set(refused) == {"Read.me", "read.me", "Dir/x", "dir/X"}
    assert "'read.me'" in refused["Read.me"]
    assert "'Read.me'" in refused["read.me"]
    assert report.exit_code == 3
    assert report.totals.of("copied").objects == 1
    if not dry_run:
        assert files_of(tmp_path / "target") == {"dir/y": b"5"}


def test_what_stands_at_the_target_is_not_overwritten_nor_deleted(
    make_tree: MakeTree, s3: Operator
) -> None:
    """The source has ``a``, the target ``A``: on such a disk they are one file."""
    source = make_tree("source", {"a": b"new", "b": b"1"})
    s3.write("A", b"old")
    report = sync_tree(f"{source}/", s3, delete=True, fold_case=True)
    assert [row.path for row in report.problems] == ["a"]
    assert report.no_deletes
    assert objects_of(s3) == {"A": b"old", "b": b"1"}


def test_what_filters_leave_out_does_not_collide(make_tree: MakeTree, tmp_path: Path) -> None:
    """One of two is excluded: the other is copied."""
    source = make_tree("source", FILES)
    report = copy_tree(
        f"{source}/", f"{tmp_path}/target/", fold_case=True, exclude=["Read.me", "/Dir/"]
    )
    assert report.ok, report.problems
    assert set(files_of(tmp_path / "target")) == {"read.me", "dir/X", "dir/y"}


def test_what_limits_and_patterns_leave_out_does_not_collide(
    make_tree: MakeTree, tmp_path: Path
) -> None:
    """One of two is too large; one of those that a pattern chooses is excluded."""
    source = make_tree("source", {"a/Read.me": b"long", "a/read.me": b"1"})
    report = copy_tree(f"{source}/", f"{tmp_path}/one/", fold_case=True, max_size=2)
    assert report.ok, report.problems
    assert files_of(tmp_path / "one") == {"a/read.me": b"1"}
    report = copy_tree(f"{source}/a*", f"{tmp_path}/two/", fold_case=True, exclude=["Read.me"])
    assert report.ok, report.problems
    assert files_of(tmp_path / "two") == {"a/read.me": b"1"}


def test_what_both_trees_have_keeps_its_name(make_tree: MakeTree, tmp_path: Path) -> None:
    """The target has the second of two: the first gets the suffix, although it comes before."""
    source, target = make_tree("source", {"A": b"1", "a": b"2"}), make_tree("target", {"a": b"2"})
    report = copy_tree(f"{source}/", target, fold_case=True, on_collision="rename")
    assert report.ok, report.problems
    assert files_of(target) == {"a": b"2", give_name("A"): b"1"}


def test_a_target_that_tells_cases_apart_keeps_both(make_tree: MakeTree, tmp_path: Path) -> None:
    """Found out by looking at the folder, or the one above it; links prove nothing."""
    source = make_tree("source", FILES)
    os.link(source / "dir/y", source / "dir/Y")
    for folder in (source, source / "dir", tmp_path / "not" / "there"):
        expected = (tmp_path / "SOURCE").exists()
        assert folds_case(Side(Operator.from_uri(folder).service)) == expected
    assert not list(tmp_path.glob("not"))


def test_a_cluster_refuses_it(make_tree: MakeTree, tmp_path: Path) -> None:
    """Ranges that know nothing of each other could not tell."""
    source = make_tree("source", FILES)
    with pytest.raises(Unsupported, match="Spark"):
        copy_tree(f"{source}/", f"{tmp_path}/target/", fold_case=True, spark="local[1]")


@pytest.mark.parametrize("dry_run", [True, False])
def test_all_but_one_get_a_suffix(make_tree: MakeTree, tmp_path: Path, dry_run: bool) -> None:
    """The suffix is told and comes from the path: the next run has nothing to do or to delete."""
    source, target = make_tree("source", FILES), tmp_path / "target"
    rows: list[Row] = []
    report = sync_tree(
        f"{source}/",
        f"{target}/",
        delete=True,
        fold_case=True,
        on_collision="rename",
        dry_run=dry_run,
        on_event=rows.append,
    )
    assert report.ok, report.problems
    told = {row.path: row.target for row in rows if row.target is not None}
    assert set(told) == {"read.me", "dir/X"}
    assert told == {path: give_name(path) for path in told}
    (why,) = (row.why for row in rows if row.path == "read.me")
    assert repr(told["read.me"]) in why
    assert "'Read.me'" in why
    if dry_run:
        assert not target.exists()
        return
    expected = {told.get(path, path): content for path, content in FILES.items()}
    assert files_of(target) == expected
    again = sync_tree(
        f"{source}/", f"{target}/", delete=True, fold_case=True, on_collision="rename", verify=True
    )
    assert again.totals.of("up to date").objects == len(FILES)
    assert again.totals.of("deleted").objects == 0
    assert files_of(target) == expected
    (source / "read.me").write_bytes(b"changed")
    sync_tree(f"{source}/", f"{target}/", delete=True, fold_case=True, on_collision="rename")
    assert files_of(target) == {**expected, told["read.me"]: b"changed"}


def test_what_stands_at_the_target_keeps_its_name(make_tree: MakeTree, s3: Operator) -> None:
    """The source's own gets the suffix, whatever its name; a move takes the source away."""
    source = make_tree("source", {"A": b"new", "b": b"1"})
    s3.write("a", b"old")
    report = move_tree(f"{source}/", s3, fold_case=True, on_collision="rename", verify=True)
    assert report.ok, report.problems
    assert report.verified == 2
    assert objects_of(s3) == {"a": b"old", give_name("A"): b"new", "b": b"1"}
    assert files_of(source) == {}


def test_a_collision_that_is_over_is_cleared_away(make_tree: MakeTree, tmp_path: Path) -> None:
    """One of the two is deleted at the source: the other gets its own name back."""
    source, target = make_tree("source", {"Read.me": b"1", "read.me": b"2"}), tmp_path / "target"
    wanted = {"delete": True, "fold_case": True, "on_collision": "rename", "max_delete": "100%"}
    sync_tree(f"{source}/", f"{target}/", **wanted)
    (source / "Read.me").unlink()
    for _ in range(2):
        sync_tree(f"{source}/", f"{target}/", **wanted)
    assert files_of(target) == {"read.me": b"2"}
