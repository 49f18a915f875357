"""Several sources of one run: none takes away or overwrites what another brings."""

from __future__ import annotations

from pathlib import Path

import pytest

from calque.errors import InvalidInput, IsSameFile
from calque.transfer.api import copy_tree, move_tree, sync_tree
from tests.transfer.conftest import MakeTree, files_of


@pytest.mark.parametrize(
    "sources",
    [
        ("x/a", "y/"),  # y/ would clear T of a/
        ("x/a", "y/a"),  # both are T/a
        ("x/", "y/"),
        ("x/*", "y/a"),
        ("x/a/f", "y/a/"),  # one file, and a folder that may have it too
        ("x/a/f", "y/a/f"),
    ],
)
def test_trees_that_may_meet_are_refused(
    make_tree: MakeTree, tmp_path: Path, sources: tuple[str, str]
) -> None:
    """With delete, and for moves: nothing is done, and every file is still there."""
    make_tree("x/a", {"f": b"1"})
    make_tree("y/a", {"f": b"2", "g": b"3"})
    target = make_tree("T", {"a/old": b"4"})
    given = [f"{tmp_path}/{each}" for each in sources]
    with pytest.raises(InvalidInput, match="may bring the same paths"):
        sync_tree(given, target, delete=True)
    with pytest.raises(InvalidInput, match="may bring the same paths"):
        move_tree(given, target)
    assert files_of(tmp_path / "x") == {"a/f": b"1"}
    assert files_of(tmp_path / "y") == {"a/f": b"2", "a/g": b"3"}
    assert files_of(target) == {"a/old": b"4"}
    with pytest.raises(InvalidInput, match="more than one of the sources"):
        copy_tree(given, target)  # which sees that they do meet
    assert files_of(target) == {"a/old": b"4"}


@pytest.mark.parametrize("sources", [("x/a", "y/b"), ("x/a/f", "y/b"), ("x/a/f", "y/b/*.txt")])
def test_trees_that_cannot_meet_are_moved(
    make_tree: MakeTree, tmp_path: Path, sources: tuple[str, str]
) -> None:
    """Folders of two names, a file beside a folder, a pattern that a file does not match."""
    make_tree("x/a", {"f": b"1"})
    make_tree("y/b", {"g.txt": b"2"})
    given = [f"{tmp_path}/{each}" for each in sources]
    assert move_tree(given, tmp_path / "T").ok
    assert sorted(files_of(tmp_path / "T").values()) == [b"1", b"2"]


@pytest.mark.parametrize("inner", ["T/b/sub/a", "T/b/sub/a/f"])
def test_a_source_inside_the_target_of_another_survives(
    make_tree: MakeTree, tmp_path: Path, inner: str
) -> None:
    """The delete of one tree would take the source of the other: refused."""
    make_tree("T/b/sub/a", {"f": b"1"})
    make_tree("y/b", {"g": b"2"})
    with pytest.raises(IsSameFile):
        sync_tree([f"{tmp_path}/{inner}", f"{tmp_path}/y/b"], tmp_path / "T", delete=True)
    assert files_of(tmp_path / "T") == {"b/sub/a/f": b"1"}
