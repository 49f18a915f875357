"""Names that differ in the case of letters only: neither overwrites the other."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from calque.errors import Unsupported
from calque.operator import Operator
from calque.transfer.api import copy_tree, sync_tree
from calque.transfer.plan.collisions import folds_case
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
