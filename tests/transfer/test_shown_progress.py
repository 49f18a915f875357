"""How far a run over trees is, for people: told to a function, a line in a notebook."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import calque
from calque.transfer.report.progress import TreeProgress
from calque.transfer.report.shown_progress import describe_progress
from tests.notebook_stand_in import run_in_notebook
from tests.transfer.conftest import MakeTree

RUN = """
import time
from calque.transfer.report import shown_progress
shown_progress._LOOK_SECONDS = 0.01
wanted = eval(sys.argv[1])
wait = wanted != {"progress": False}
def seen(row, line="<code>"):  # goes on when the line was shown
    while wait and not any(line in each for each in shown):
        time.sleep(0.01)
assert CALL
"""


@pytest.mark.parametrize("options", ["{}", "{'progress': True}", "{'progress': False}"])
def test_a_notebook_shows_a_line(make_tree: MakeTree, tmp_path: Path, options: str) -> None:
    """Without being asked, and not where it is not wanted; nothing of it stays in the cell."""
    source = make_tree("source", {"a": b"1", "b": b"2"})
    call = "calque.copy_tree(sys.argv[2], sys.argv[3], on_event=seen, **wanted).ok"
    places = (f"{source}/", str(tmp_path / "to"))
    shown = run_in_notebook(RUN.replace("CALL", call), options, *places)
    if "False" in options:
        assert shown == []
    else:
        assert shown[0].startswith("<code>")
        assert " copied, " in shown[0]
        assert shown[-1] == ""


def test_checks_and_removals_show_theirs(make_tree: MakeTree) -> None:
    """What takes as long as a copy shows as much, in the same way."""
    one, two = (make_tree(name, {"a": b"1", "b": b"2"}) for name in ("one", "two"))
    deleting = "<code>deleting: 0 of 2 (0%)</code>"
    calls = (
        "calque.check_trees(sys.argv[2], sys.argv[3], on_event=seen).equal and shown.pop(0) and "
        "shown.clear() is None and "
        f"calque.remove_tree(sys.argv[3], on_event=lambda row: seen(row, {deleting!r})).ok"
    )
    shown = run_in_notebook(RUN.replace("CALL", calls), "{}", f"{one}/", f"{two}/")
    assert deleting in shown  # after lines of its listing, where that takes longer than a look
    assert shown[-1] == ""


def test_checks_and_removals_tell_a_function(make_tree: MakeTree) -> None:
    """How many were compared, and how many were deleted of those that will be."""
    one, two = (make_tree(name, {"a": b"1", "b": b"2"}) for name in ("one", "two"))
    told: list[str] = []

    def tell(progress: TreeProgress) -> None:
        told.append(describe_progress(progress, 1))

    assert calque.check_trees(f"{one}/", f"{two}/", progress=tell).equal
    assert told[-1] == "comparing: 2 listed so far"
    assert calque.remove_tree(f"{two}/", progress=tell).ok
    assert told[-1] == "deleting: 2 of 2 (100%)"
    assert calque.sync_tree(
        f"{two}/", f"{one}/", delete=True, delete_all=True, max_delete="100%", progress=tell
    ).ok
    assert told[-1] == "deleting: 2 of 2 (100%)"


def test_a_function_is_told(make_tree: MakeTree, tmp_path: Path) -> None:
    """At least once, when all is done; awaited runs too."""
    source = make_tree("source", {"a": b"1", "b": b"22"})
    told: list[tuple[int, int, bool]] = []

    def tell(progress: TreeProgress) -> None:
        told.append((progress.ended, progress.bytes_moved, progress.listing))

    calque.copy_tree(f"{source}/", tmp_path / "one", progress=tell)
    assert told[-1] == (2, 3, False)
    told.clear()
    asyncio.run(calque.copy_tree_async(f"{source}/", tmp_path / "two", progress=tell))
    assert told[-1] == (2, 3, False)


def test_lines() -> None:
    """What was listed so far; then the share and the time that is left."""
    progress = TreeProgress(listed=7, to_copy=3, ended=1, bytes_moved=1024, bytes_to_copy=4096)
    assert describe_progress(progress, 5) == "7 listed so far, 1 copied, 1.0 KiB of 3"
    progress.listing = False
    assert (
        describe_progress(progress, 5) == "copying: 1 copied, 1.0 KiB of 4.0 KiB (25%), 15 s left"
    )
    assert describe_progress(progress, 0.1).endswith("(25%)")  # too early to tell
    for seconds, left in ((600, "30 min"), (36_000, "30 h"), (864_000, "30 days")):
        assert describe_progress(progress, seconds).endswith(f", {left} left")
