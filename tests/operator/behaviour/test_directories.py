"""Directories made, trees removed, and a look whether all is well."""

import pytest

from calque.errors import InvalidInput, PathEscape
from calque.operator import Operator


def test_a_directory_is_made(op: Operator) -> None:
    """It is there afterwards, empty; making it again changes nothing."""
    op.create_dir("a/b/")
    assert op.stat("a/b/").is_dir
    op.write("a/b/x", b"data")
    op.create_dir("a/b/")
    assert op.read("a/b/x") == b"data"
    for bad in ("a/c", ""):
        with pytest.raises(InvalidInput):
            op.create_dir(bad)
    with pytest.raises(PathEscape):
        op.create_dir("../out/")


def test_a_tree_is_removed(op: Operator) -> None:
    """What lies below goes, directories too; neighbours whose names begin alike stay."""
    for name in ("t/1", "t/2/3", "t/2/4/5", "t-", "tt/1", "u"):
        op.write(name, b"x")
    op.create_dir("t/empty/")
    assert op.remove_all("t/") >= 3
    assert sorted(entry.path for entry in op.list()) == ["t-", "tt/1", "u"]
    assert op.scheme == "s3" or not op.exists("t/")  # SeaweedFS keeps empty folders of its own
    assert op.remove_all("u") == 1
    assert op.remove_all("missing") == 0
    assert sorted(entry.path for entry in op.list()) == ["t-", "tt/1"]


def test_many_are_removed(op: Operator) -> None:
    """More than a page of them."""
    for number in range(30):
        op.write(f"many/{number:03}", b"")
    assert op.remove_all("many") == 30
    assert list(op.list()) == []


def test_nothing_is_removed_by_an_empty_path(op: Operator) -> None:
    """An empty variable must not empty a bucket."""
    op.write("x", b"data")
    for bad in ("", ".."):
        with pytest.raises(InvalidInput):
            op.remove_all(bad)
    assert op.read("x") == b"data"


def test_all_is_well(op: Operator) -> None:
    """check() says nothing where the service answers."""
    op.check()
