"""How far a run over trees is, for people: told to a function, a line in a notebook."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import calque
from calque.transfer.report.progress import TreeProgress
from calque.transfer.report.shown_progress import describe_progress
from tests.program import run_program
from tests.transfer.conftest import MakeTree

NOTEBOOK = """
import sys, types
shown = []
class Line:
    def update(self, html): shown.append(html.data)
class HTML:
    def __init__(self, data): self.data = data
class Shell:
    kernel = object()  # what a shell has that serves a notebook
ipython = types.ModuleType("IPython")
ipython.get_ipython = Shell
ipython.display = types.ModuleType("IPython.display")
ipython.display.HTML = HTML
ipython.display.display = lambda html, display_id: Line()
sys.modules.update({"IPython": ipython, "IPython.display": ipython.display})
import calque
from calque.transfer.report import shown_progress
shown_progress._LOOK_SECONDS = 0.01
seen = lambda row: [time.sleep(0.01) for _ in range(2000) if not shown]
import time
options = eval(sys.argv[3])
report = calque.copy_tree(sys.argv[1], sys.argv[2], on_event=seen if options != {"progress": False}
    else None, **options)
assert report.ok
print(shown)
"""


@pytest.mark.parametrize("options", ["{}", "{'progress': True}", "{'progress': False}"])
def test_a_notebook_shows_a_line(make_tree: MakeTree, tmp_path: Path, options: str) -> None:
    """Without being asked, and not where it is not wanted; nothing of it stays in the cell."""
    source = make_tree("source", {"a": b"1", "b": b"2"})
    done = run_program(NOTEBOOK, f"{source}/", tmp_path / "to", options)
    assert done.returncode == 0, done.stderr
    shown = eval(done.stdout.strip().splitlines()[-1])
    if "False" in options:
        assert shown == []
    else:
        assert shown[0].startswith("<code>")
        assert " copied, " in shown[0]
        assert shown[-1] == ""


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
