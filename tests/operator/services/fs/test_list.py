"""Listings come in key order, whole, streaming, and show objects only."""

from __future__ import annotations

import os
import socket
import tempfile
import tracemalloc
from contextlib import suppress
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calque.errors import PermissionDenied
from calque.operator import Operator
from tests.operator.services.fs.conftest import finish, open_to_all, start

SEGMENT = st.text(st.sampled_from("ab-./0é😀\udc80\udcff"), min_size=1, max_size=3).filter(
    lambda text: "/" not in text and text not in (".", "..")
)
KEYS = st.sets(st.lists(SEGMENT, min_size=1, max_size=3).map("/".join), max_size=12)


def _fill(root: str, keys: set[str]) -> set[str]:
    """Make the files; a key that would need a file to be a directory is left out."""
    made = set()
    for key in sorted(keys):
        path = os.path.join(root, key)
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "x"):
                made.add(key)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue
    return made


def _model(keys: set[str], prefix: str, after: str, recursive: bool) -> list[str]:
    """What S3 would answer, by the simplest rule there is."""
    shown = set()
    for key in keys:
        if key.startswith(prefix):
            rest = key[len(prefix) :]
            cut = rest.find("/")
            shown.add(key if recursive or cut < 0 else prefix + rest[: cut + 1])
    return sorted(
        (each for each in shown if not after or os.fsencode(each) > os.fsencode(after)),
        key=os.fsencode,
    )


@settings(max_examples=150, deadline=None)
@given(keys=KEYS, data=st.data(), recursive=st.booleans())
def test_order_prefix_and_start(keys: set[str], data: st.DataObject, recursive: bool) -> None:
    """Any tree, any prefix, any start: the same as sorting all keys by their bytes."""
    with tempfile.TemporaryDirectory() as root:
        made = _fill(root, keys)
        choices = ["", *(key[:cut] for key in made for cut in range(1, len(key) + 1))]
        choices = [each for each in choices if ".." not in each.split("/")]
        prefix = data.draw(st.sampled_from(choices))
        after = data.draw(st.sampled_from([*choices, "zz"]))
        op = Operator.from_uri(root)
        found = [entry.path for entry in op.list(prefix, start_after=after, recursive=recursive)]
        assert found == _model(made, prefix, after, recursive)


def test_a_dash_comes_before_a_folder(op: Operator) -> None:
    """``a-`` sorts before ``a/b`` as on S3, although the folder ``a`` sorts before ``a-``."""
    for key in ("a/b", "a-", "a.c", "ab"):
        op.write(key, b"")
    assert [entry.path for entry in op.list()] == ["a-", "a.c", "a/b", "ab"]


def test_only_files_are_shown(op: Operator, folder: Path) -> None:
    """Sockets, pipes, dangling links and temporary files are not objects."""
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(folder / "socket"))
    (folder / "dangling").symlink_to("nowhere")
    (folder / f".calque-{'a' * 24}-x.tmp").write_text("half")
    (folder / ".calque-not-ours.tmp").write_text("a user's own")
    (folder / "empty").mkdir()
    (folder / "file").write_text("x")
    assert [entry.path for entry in op.list()] == [".calque-not-ours.tmp", "file"]
    shown = [entry.path for entry in op.list(recursive=False)]
    assert shown == [".calque-not-ours.tmp", "empty/", "file"]


def test_a_pipe_is_not_waited_for(op: Operator, folder: Path) -> None:
    """Reading or copying a pipe is refused at once."""
    os.mkfifo(folder / "pipe")
    for verb in (op.stat, op.read, lambda path: op.copy(path, "x")):
        with pytest.raises(NotImplementedError, match="pipe"):
            verb("pipe")


def test_linked_folders_do_not_loop(op: Operator, folder: Path) -> None:
    """A recursive listing does not follow links to folders; one level shows them."""
    op.write("d/x", b"1")
    (folder / "d" / "up").symlink_to("..")
    (folder / "link").symlink_to("d/x")
    assert [entry.path for entry in op.list()] == ["d/x", "link"]
    assert [entry.path for entry in op.list("d/", recursive=False)] == ["d/up/", "d/x"]
    assert [entry.path for entry in op.list("d/up/d/")] == ["d/up/d/x"]
    assert next(entry.size for entry in op.list("link")) == 1


def test_start_after_opens_no_folder_before_it(op: Operator, folder: Path) -> None:
    """Whole folders that lie before the start are never read."""
    for number in range(5):
        op.write(f"d{number}/x", b"")
    os.chmod(folder / "d1", 0)
    code = """
import os, sys
from calque.operator import Operator
op = Operator.from_uri(sys.argv[1])
if os.geteuid() == 0: os.setgid(65534); os.setuid(65534)
print([entry.path for entry in op.list(start_after="d2")])
"""
    open_to_all(folder)
    os.chmod(folder / "d1", 0)
    assert finish(start(code, folder)).strip() == "['d2/x', 'd3/x', 'd4/x']"


def test_what_cannot_be_read_is_an_error(op: Operator, folder: Path) -> None:
    """A folder without permission ends the listing with an error, never silently shorter."""
    op.write("a/x", b"")
    op.write("b/x", b"")
    code = """
import os, sys
from calque.errors import PermissionDenied
from calque.operator import Operator
op = Operator.from_uri(sys.argv[1])
if os.geteuid() == 0: os.setgid(65534); os.setuid(65534)
try:
    list(op.list())
except PermissionDenied as error:
    print("denied", error.message)
"""
    open_to_all(folder)
    os.chmod(folder / "a", 0)
    assert finish(start(code, folder)).startswith(f"denied '{folder}/a'")
    assert issubclass(PermissionDenied, PermissionError)


def open_below(folder: Path) -> int:
    """How many descriptors of this process are of something there; others come and go."""
    found = 0
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the listing's own, for one
            found += os.readlink(f"/proc/self/fd/{number}").startswith(str(folder))
    return found


def test_deep_trees_hold_few_descriptors(op: Operator, folder: Path) -> None:
    """One directory is open at a time, so depth costs no descriptors."""
    op.write("/".join(["d"] * 150) + "/leaf", b"")
    before = open_below(folder)
    listing = op.list()
    found = next(listing)
    assert found.path.endswith("d/leaf")
    assert open_below(folder) <= before + 2
    assert list(listing) == []
    assert open_below(folder) == before


def test_memory_does_not_grow_with_the_tree(tmp_path: Path) -> None:
    """Only the names of the directories on the way down are held, never the tree."""
    op = Operator.from_uri(str(tmp_path), durable=False)
    peaks = []
    for folders in range(5, 101, 95):
        for number in range(folders):
            for each in range(30):
                op.write(f"{folders}/{number:03}/{each}", b"")
        tracemalloc.start()
        count = sum(1 for _ in op.list(f"{folders}/"))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert count == 30 * folders
    assert peaks[1] < peaks[0] + 64 * 1024


def test_a_listing_that_is_dropped_closes_what_it_held(op: Operator, folder: Path) -> None:
    """Whoever stops early leaks nothing."""
    for number in range(20):
        op.write(f"d/{number}", b"")
    before = open_below(folder)
    listing = op.list()
    assert len(list(islice(listing, 3))) == 3
    assert open_below(folder) > before
    listing.close()  # type: ignore[attr-defined]
    assert open_below(folder) == before


def test_what_vanishes_meanwhile_is_left_out(op: Operator, folder: Path) -> None:
    """Files and folders deleted during a listing are no error."""
    for key in ("a", "b", "c/x", "d/y", "e"):
        op.write(key, b"")
    listing = op.list()
    assert next(listing).path == "a"
    op.delete("b")
    op.delete("c/x")
    (folder / "c").rmdir()
    assert [entry.path for entry in listing] == ["d/y", "e"]


def test_a_missing_prefix_is_empty(op: Operator, folder: Path) -> None:
    """As on S3: nothing there is an empty listing, also before the root exists."""
    assert list(op.list("nope/")) == []
    assert list(Operator.from_uri(str(folder / "not" / "yet")).list()) == []


def test_a_listed_file_can_be_pinned(op: Operator) -> None:
    """What a listing says of a file is what stat says."""
    op.write("x", b"12")
    assert next(op.list()) == op.stat("x")
