"""Stat and exists, on every service."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from calque.errors import NotFound, PathEscape
from calque.operator import Operator


def test_stat_tells_size_time_and_pin(op: Operator) -> None:
    """What was written is found with its size, a recent time and something to pin it by."""
    op.write("a/b.txt", b"hello")
    found = op.stat("a/b.txt")
    assert (found.path, found.size, found.is_dir) == ("a/b.txt", 5, False)
    assert found.pin
    assert found.last_modified is not None
    assert abs(datetime.now(UTC) - found.last_modified) < timedelta(hours=1)


def test_stat_of_what_is_missing(op: Operator) -> None:
    """A missing object is NotFound and its message says where."""
    with pytest.raises(NotFound) as raised:
        op.stat("nothing/here")
    assert "nothing/here" in str(raised.value)
    assert not op.exists("nothing/here")


def test_a_directory_is_there_when_something_is_in_it(op: Operator) -> None:
    """A path that ends in a slash names a directory; the root always is one."""
    op.write("dir/file", b"x")
    assert op.stat("dir/").is_dir
    assert op.stat("").is_dir
    assert op.exists("dir/")
    assert not op.exists("di/")


def test_an_overwrite_changes_the_pin(op: Operator) -> None:
    """Other bytes have another pin, even when there are as many of them."""
    before = op.write("k", b"one").pin or op.stat("k").pin
    op.write("k", b"two")
    assert op.stat("k").pin != before


@pytest.mark.parametrize("path", ["../x", "a/../../x", "..", "a/..", "/../x"])
def test_no_path_leads_out_of_the_root(op: Operator, path: str) -> None:
    """A path with a parent segment is refused by every verb, before any request."""
    for verb in (op.stat, op.read, op.delete, op.location):
        with pytest.raises(PathEscape):
            verb(path)
    with pytest.raises(PathEscape):
        op.write(path, b"x")
    with pytest.raises(PathEscape):
        list(op.list(path))


def test_a_version_is_read_by_its_name(op: Operator, need: Callable[..., None]) -> None:
    """Where versions are kept, an old one is found although a newer one took the name."""
    need("read_with_version", "versions")
    op.write("v", b"old")
    old = op.stat("v")
    op.write("v", b"newer")
    assert op.stat("v", version=old.version).size == 3
    assert op.read("v", version=old.version) == b"old"
    with pytest.raises(NotFound):
        op.stat("gone", version=old.version)
