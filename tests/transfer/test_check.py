"""``check_trees``: compared by several rules, nothing changed."""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from base64 import b64encode
from pathlib import Path

import pytest

import calque
from calque.errors import InvalidInput, NotFound
from calque.operator import Operator
from calque.transfer.check import By, CheckReport, CheckRow, check_against
from calque.transfer.model import Row
from calque.transfer.report.report_file import ReportFile
from tests.transfer.conftest import MakeTree

FILES = {"a/same": b"one", "a/changed": b"two", "b": b"three", "gone": b"x"}
OTHERS = {"a/same": b"one", "a/changed": b"TWO", "b": b"threes", "more": b"y"}
WANTED = {"a/same": "=", "a/changed": "*", "b": "*", "gone": "+", "more": "-"}


def check(
    source: object, target: object, by: By = "listing", **options: object
) -> tuple[CheckReport, dict[str, str]]:
    rows: list[CheckRow] = []
    source = f"{source}/" if isinstance(source, Path) else source  # what lies below it
    report = calque.check_trees(source, target, by=by, on_event=rows.append, **options)  # type: ignore[arg-type]
    return report, {row.path: row.sign for row in rows}


@pytest.mark.parametrize("by", ["checksum", "download"])
def test_files(make_tree: MakeTree, by: By) -> None:
    """Each path gets its sign; the exit code says that they differ."""
    report, signs = check(make_tree("one", FILES), make_tree("two", OTHERS), by)
    assert signs == WANTED
    assert report.exit_code == 1
    assert report.counts == {"=": 1, "+": 1, "-": 1, "*": 2, "!": 0}


def test_sizes_do_not_tell_all(make_tree: MakeTree) -> None:
    """By size, bytes that changed and kept their number pass, and the rule that spoke is told."""
    report, signs = check(make_tree("one", FILES), make_tree("two", OTHERS), "size")
    assert signs == {**WANTED, "a/changed": "="}
    assert report.rules == {"size": 2}


@pytest.mark.parametrize("by", ["listing", "checksum", "download"])
def test_across_services(make_tree: MakeTree, s3: Operator, by: By) -> None:
    """A local tree and objects, the same signs; filters hold for both sides."""
    for path, content in OTHERS.items():
        s3.write(path, content)
    report, signs = check(make_tree("one", FILES), s3, by)
    if by == "listing":
        assert signs == {**WANTED, "a/changed": "="}  # sizes are all that both listings tell
    else:
        assert signs == WANTED
    report, signs = check(make_tree("one", FILES), s3, by, exclude=["changed", "b", "gone", "more"])
    assert signs == {"a/same": "="}
    assert report.exit_code == 0


def test_within_a_service() -> None:
    """Listings of one service tell checksums: a change of the same size is found by them alone."""
    one, two = Operator.from_uri("memory://check-one"), Operator.from_uri("memory://check-two")
    for path, content in FILES.items():
        one.write(path, content)
    for path, content in OTHERS.items():
        two.write(path, content)
    report, signs = check(one, two)
    assert signs == WANTED
    assert report.rules == {"checksum": 1}
    assert check(one, one)[0].equal


def test_what_cannot_be_read(make_tree: MakeTree) -> None:
    """An object that cannot be read is never called equal: exit code 3."""
    one, two = make_tree("one", {"a": b"x", "b": b"y"}), make_tree("two", {"a": b"x", "b": b"y"})
    os.chmod(one / "b", 0)
    if os.access(one / "b", os.R_OK):
        pytest.skip("this user may read everything")
    report, signs = check(one, two, "download")
    assert signs == {"a": "=", "b": "!"}
    assert report.exit_code == 3


def test_bad_requests(make_tree: MakeTree, tmp_path: Path) -> None:
    """A source that is not there and a rule that is none are told."""
    with pytest.raises(NotFound):
        check(tmp_path / "nowhere", make_tree("two", OTHERS))
    with pytest.raises(InvalidInput, match="cannot be compared"):
        check(tmp_path, tmp_path, "smell")  # type: ignore[arg-type]


def test_against_a_report(make_tree: MakeTree, tmp_path: Path) -> None:
    """A target is proven by recorded checksums alone; what has none is not called equal."""
    target = make_tree("two", OTHERS)
    file = ReportFile(tmp_path / "report.jsonl")

    def checksum(content: bytes) -> str:
        digest = hashlib.md5(content, usedforsecurity=False).digest()
        return f"md5:{b64encode(digest).decode()}"

    file.write(
        Row(path, "copied", "new", size=len(content), checksum=checksum(content))
        for path, content in FILES.items()
    )
    file.write([Row("more", "up to date", "time", size=1), Row("bad", "failed", "new")])
    file.publish()
    file.close(over=True)
    rows: list[CheckRow] = []
    report = check_against(str(tmp_path / "report.jsonl"), target, on_event=rows.append)
    assert {row.path: row.sign for row in rows} == {
        "a/same": "=",
        "a/changed": "*",
        "b": "*",
        "gone": "+",
        "more": "!",
    }
    assert report.exit_code == 1


def test_reports_show_themselves_in_notebooks(make_tree: MakeTree) -> None:
    """A run and a check are tables of HTML there, and names are text in it, whoever chose them."""
    source = make_tree("<b>one</b>", FILES)
    ran = calque.copy_tree(f"{source}/", source.parent / "copy", dry_run=True)._repr_html_()
    assert "<td>copied</td><td>4</td>" in ran
    assert "(dry run)" in ran
    report, _ = check(source, make_tree("two", OTHERS))
    shown = report._repr_html_()
    assert "<td>only at the source</td><td>1</td>" in shown
    assert "<b>one" not in ran + shown
    assert "&lt;b&gt;one" in ran or "%3Cb%3Eone" in ran


def test_awaited_and_cancelled(make_tree: MakeTree) -> None:
    """The asynchronous face gives the same report; a cancelled task compares no more."""
    one, two = (make_tree(name, {f"{n:03}": b"x" for n in range(200)}) for name in ("one", "two"))
    report = asyncio.run(calque.check_trees_async(f"{one}/", two, by="checksum"))
    assert (report.equal, report.counts["="]) == (True, 200)
    begun, seen = threading.Event(), list[CheckRow]()

    def see(row: CheckRow) -> None:
        seen.append(row)
        begun.set()
        cancelled.wait(60)

    async def stopped() -> None:
        task = asyncio.ensure_future(calque.check_trees_async(f"{one}/", two, on_event=see))
        await asyncio.to_thread(begun.wait, 60)
        task.cancel()
        asyncio.get_running_loop().call_later(0.2, cancelled.set)
        with pytest.raises(asyncio.CancelledError):
            await task

    cancelled = threading.Event()
    asyncio.run(stopped())
    assert len(seen) == 1
