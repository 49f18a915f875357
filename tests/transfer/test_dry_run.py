"""What a dry run tells of targets that cannot be written: just what the run tells then."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from calque.operator import Operator
from calque.transfer.api import copy_tree, move_tree, sync_tree
from calque.transfer.model import Row
from calque.transfer.report.report import Report
from tests.transfer.conftest import MakeTree

Verb = Callable[..., Report]
MIB = 1024 * 1024
WAYS: dict[str, tuple[Verb, dict[str, object]]] = {
    "cp": (copy_tree, {}),
    "cp links": (copy_tree, {"links": "keep"}),
    "mv": (move_tree, {}),
    "sync": (sync_tree, {"delete": True}),
}


def tell(verb: Verb, *trees: object, **options: object) -> tuple[list[tuple[object, ...]], str]:
    rows: list[Row] = []
    report = verb(*trees, on_event=rows.append, **options)
    told = [(row.path, row.outcome, row.rule, row.why, row.error) for row in rows]
    return sorted(told, key=str), report.no_deletes


@pytest.mark.parametrize("remote", [False, True], ids=["fs", "memory"])
@pytest.mark.parametrize("way", WAYS)
def test_what_is_in_the_way_of_a_file(
    make_tree: MakeTree, tmp_path: Path, way: str, remote: bool
) -> None:
    """A folder with files, an empty one, a link to one, a pipe: each is the same failure in both,
    forbids the same deletes, and is still there after the run."""
    files = dict.fromkeys(("empty", "full", "led", "pipe", "free"), b"1")
    source: object = make_tree("source", {**files, "large": bytes(9 * MIB)})
    os.symlink("free", tmp_path / "source" / "kept")
    if remote:
        operator = Operator.from_uri(f"memory://in-the-way-{way}")
        copy_tree(f"{source}/", operator)
        source = operator
    target = make_tree("target", {"full/x": b"2", "large/x": b"2", "kept/x": b"3", "gone": b"4"})
    (target / "empty").mkdir()
    (target / "led").symlink_to("full")
    os.mkfifo(target / "pipe")
    verb, options = WAYS[way]
    trees = (source if remote else f"{source}/", f"{target}/")
    told = tell(verb, *trees, dry_run=True, **options)
    assert told == tell(verb, *trees, **options)
    failed = {path for path, outcome, *_ in told[0] if outcome == "failed"}
    assert failed == {"empty", "full", "large", "kept", "led", "pipe"}
    assert (target / "full" / "x").read_bytes() == b"2"
    assert (target / "pipe").is_fifo()


def test_a_kept_link_takes_no_place_but_of_files_and_links(
    make_tree: MakeTree, tmp_path: Path
) -> None:
    """A pipe and a folder stay; a file and a link, to a folder even, are replaced."""
    source = make_tree("source", {"free": b"1"})
    target = make_tree("target", {"folder/x": b"1", "file": b"1"})
    for name in ("folder", "file", "link", "pipe"):
        (source / name).symlink_to("free")
    (target / "link").symlink_to("folder")
    os.mkfifo(target / "pipe")
    rows: list[Row] = []
    copy_tree(f"{source}/", f"{target}/", links="keep", compare="always", on_event=rows.append)
    failed = {row.path for row in rows if row.outcome == "failed"}
    assert failed == {"folder", "pipe"}
    assert (target / "pipe").is_fifo()
    assert os.readlink(target / "link") == os.readlink(target / "file") == "free"
