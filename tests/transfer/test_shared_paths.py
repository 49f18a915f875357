"""Several sources that have a path in common: refused, for the last would win in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from calque.errors import InvalidInput
from calque.operator import Operator
from calque.transfer.api import copy_tree, move_tree
from tests.servers.seaweedfs import S3Server
from tests.transfer.conftest import MakeTree, files_of, s3_options


@pytest.mark.parametrize("verb", [copy_tree, move_tree])
@pytest.mark.parametrize(
    "sources",
    [
        ("one/", "two/"),
        ("one/x", "two/x"),
        ("one/", "two/x"),
        ("deep/", "x"),
        ("over/x", "x"),
    ],
)
def test_a_path_of_two_sources_is_refused(
    make_tree: MakeTree, tmp_path: Path, verb: object, sources: tuple[str, str]
) -> None:
    """Below slashes, files by name, folders of one name: nothing is written, nothing is moved."""
    make_tree(".", {"one/x": b"1", "one/y": b"2", "two/x": b"3", "two/z": b"4"})
    make_tree(".", {"deep/x/file": b"5", "x/file": b"6", "over/x/file": b"7"})
    before = files_of(tmp_path)
    with pytest.raises(InvalidInput, match=r"more than one of the sources has 'x|same paths"):
        verb([f"{tmp_path}/{each}" for each in sources], f"{tmp_path}/target/")  # type: ignore[operator]
    assert not (tmp_path / "target").exists()
    assert {path for path in files_of(tmp_path) if "state" not in path} >= before.keys()


def test_sources_that_lie_apart_are_merged(make_tree: MakeTree, tmp_path: Path) -> None:
    """Other paths, a folder of its own name, or an exclude: all of it arrives."""
    make_tree(".", {"one/x": b"1", "two/x": b"3", "two/z": b"4"})
    target = tmp_path / "target"
    copy_tree([f"{tmp_path}/one/", f"{tmp_path}/two"], f"{target}/")
    assert files_of(target) == {"x": b"1", "two/x": b"3", "two/z": b"4"}
    report = copy_tree(
        [f"{tmp_path}/one/", f"{tmp_path}/two/"], f"{tmp_path}/other/", exclude=["x"]
    )
    assert report.ok
    assert files_of(tmp_path / "other") == {"z": b"4"}


def test_it_is_seen_on_servers_too(s3: Operator, tree_bucket: S3Server, tmp_path: Path) -> None:
    """Prefixes of a bucket are listed for it, and nothing is written."""
    for path in ("a/x", "a/y", "b/x"):
        s3.write(path, b"1")
    base = s3.location("")
    with pytest.raises(InvalidInput, match="more than one of the sources has 'x'"):
        copy_tree(
            [f"{base}a/", f"{base}b/"],
            f"{tmp_path}/target/",
            source_options=s3_options(tree_bucket),
        )
    assert not (tmp_path / "target").exists()
