"""Symbolic links: followed, kept as links, or refused where they lead out."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import calque
from calque.errors import PathEscape
from calque.operator import Operator
from calque.operator.services.fs.links import make_link
from calque.operator.services.fs.root import Root
from calque.transfer.api import move_tree, sync_tree
from calque.transfer.model import Row
from calque.transfer.report.report import Report
from calque.values.file_attributes import LINK_TYPE

Verb = Callable[..., Report]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "a").mkdir(parents=True)
    (root / "a" / "file").write_text("x")
    (root / "a" / "near").symlink_to("file")
    (root / "up").symlink_to("a/file")
    (root / "folder").symlink_to("a")
    (root / "dangling").symlink_to("a/nothing")
    return root


def links_of(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): os.readlink(path)
        for path in root.rglob("*")
        if path.is_symlink()
    }


@pytest.mark.parametrize("service", ["fs", "s3", "memory"])
def test_kept(tree: Path, tmp_path: Path, request: pytest.FixtureRequest, service: str) -> None:
    """There and back links are links with the same text, folders' and dangling ones too, and a
    second run finds nothing to do."""
    if service == "fs":
        middle = Operator.from_uri(tmp_path / "middle")
    elif service == "memory":
        middle = Operator.from_uri(f"memory://links-{tmp_path.name}")
    else:
        middle = request.getfixturevalue("s3")
    up = calque.copy_tree(f"{tree}/", middle, links="keep")
    assert up.ok, up.problems
    if service != "fs":
        assert middle.stat("folder").content_type == LINK_TYPE
        assert middle.read("folder") == b"a"
    down = calque.copy_tree(middle, tmp_path / "back", links="keep")
    assert down.ok, down.problems
    assert links_of(tmp_path / "back") == links_of(tree)
    assert (tmp_path / "back" / "up").read_text() == "x"
    again = calque.copy_tree(middle, tmp_path / "back", links="keep")
    assert again.totals.of("copied").objects == 0, again.to_json()


def test_followed(tree: Path, tmp_path: Path) -> None:
    """By default a link to a file inside is that file; others are counted, and not followed."""
    report = calque.copy_tree(f"{tree}/", tmp_path / "copy")
    assert links_of(tmp_path / "copy") == {}
    assert sorted(path.name for path in (tmp_path / "copy").rglob("*") if path.is_file()) == [
        "file",
        "near",
        "up",
    ]
    assert report.totals.of("skipped").objects == 2


@pytest.mark.parametrize("verb", [calque.copy_tree, move_tree])
def test_followed_by_absolute_names(tmp_path: Path, tree: Path, verb: Verb) -> None:
    """A link that names its file from ``/`` on is as good as one that names it from where it lies:
    copied as the file, moved before it, and a folder stays a folder."""
    (tree / "absolute").symlink_to(tree / "a" / "file")
    (tree / "whole").symlink_to(tree / "a")
    rows: list[Row] = []
    report = verb(f"{tree}/", tmp_path / "copy", on_event=rows.append)
    assert report.ok, report.problems
    assert (tmp_path / "copy" / "absolute").read_text() == "x"
    assert not (tmp_path / "copy" / "absolute").is_symlink()
    assert {row.path: row.why for row in rows if row.outcome == "skipped"} == {
        "dangling": "link that leads out or nowhere",
        "folder": "link to a folder",
        "whole": "link to a folder",
    }


@pytest.mark.parametrize("text", ["/etc/passwd", "../../x", "a/../../../x", "../.."])
def test_links_that_lead_out(tmp_path: Path, text: str) -> None:
    """A restored link never leads out of the target, unless that is said to be wanted."""
    middle = Operator.from_uri(f"memory://out-{tmp_path.name}")
    middle.write("d/evil", text.encode(), content_type=LINK_TYPE)
    middle.write("d/good", b"../other", content_type=LINK_TYPE)
    report = calque.copy_tree(middle, tmp_path / "back", links="keep")
    assert [row.error for row in report.problems] == ["PathEscape"]
    assert links_of(tmp_path / "back") == {"d/good": "../other"}
    assert calque.copy_tree(middle, tmp_path / "back", links="unsafe", compare="always").ok
    assert links_of(tmp_path / "back")["d/evil"] == text


def test_links_that_lead_out_by_another(tmp_path: Path) -> None:
    """Not by their own words alone: one that goes up behind a name, which is a link itself; and one
    that is made in a folder which another link leads to, nearer to the root than its name says."""
    middle = Operator.from_uri(f"memory://chain-{tmp_path.name}")
    middle.write("x/b", b".", content_type=LINK_TYPE)
    middle.write("x/out", b"b/../..", content_type=LINK_TYPE)
    back = tmp_path / "back"
    report = calque.copy_tree(middle, back, links="keep")
    assert [(row.path, row.error) for row in report.problems] == [("x/out", "PathEscape")]
    assert links_of(back) == {"x/b": "."}
    (back / "near").symlink_to(".")
    make_link(Root(str(back)), "near/deep/in", b"..")
    with pytest.raises(PathEscape):
        make_link(Root(str(back)), "near/deep/out", b"../..")


@pytest.mark.parametrize("links", ["keep", "follow"])
def test_a_dry_run_tells_links_as_the_run_does(tree: Path, tmp_path: Path, links: str) -> None:
    """Those that may not be made are failures in both, and forbid deletes in both."""
    (tree / "out").symlink_to("/etc/passwd")
    (tmp_path / "back").mkdir()
    (tmp_path / "back" / "old").write_text("x")
    told: list[Row] = []
    made: list[Row] = []
    for rows, dry_run in ((told, True), (made, False)):
        sync_tree(
            f"{tree}/", tmp_path / "back", delete=True, links=links, dry_run=dry_run,
            on_event=rows.append,
        )  # fmt: skip
    seen = [sorted((row.path, row.outcome, row.error) for row in rows) for rows in (told, made)]
    assert seen[0] == seen[1]
    assert ("old", "kept" if links == "keep" else "deleted", None) in seen[1]


def test_an_object_that_stands_for_a_link_is_no_file(tmp_path: Path) -> None:
    """Unasked it becomes neither a link nor a file with the link's text: it is told."""
    middle = Operator.from_uri(f"memory://told-{tmp_path.name}")
    middle.write("link", b"file", content_type=LINK_TYPE)
    middle.write("file", b"x")
    report = calque.copy_tree(middle, tmp_path / "back")
    assert [(row.path, row.error) for row in report.problems] == [("link", "Unsupported")]


def test_empty_and_odd_texts(tmp_path: Path) -> None:
    """A link without a text, or with a NUL in it, cannot be."""
    for text in (b"", b"a\0b"):
        with pytest.raises(PathEscape):
            make_link(Root(str(tmp_path)), "link", text)
    assert os.listdir(tmp_path) == []


LINKED = {
    "a-link": "real.txt",
    "z-link": "real.txt",
    "z-to-a-link": "a-link",
    "d/up": "../real.txt",
}


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A file, links to it of every order, a link to a link, and links that stay."""
    source = tmp_path / "linked"
    (source / "d").mkdir(parents=True)
    (source / "real.txt").write_bytes(b"real")
    for path, text in {**LINKED, "out": "/etc/hostname", "nowhere": "nothing"}.items():
        (source / path).symlink_to(text)
    return source


@pytest.mark.parametrize("concurrent", [1, 16])
def test_a_move_that_follows_links_leaves_none_dangling(
    linked: Path, tmp_path: Path, concurrent: int
) -> None:
    """Each becomes a file with what it led to, and goes; what is skipped stays; the real file is
    renamed."""
    inode = (linked / "real.txt").stat().st_ino
    rows: list[Row] = []
    target = tmp_path / "target"
    report = move_tree(f"{linked}/", target, concurrent=concurrent, on_event=rows.append)
    assert report.ok, report.problems
    for path in ("real.txt", *LINKED):
        assert (target / path).read_bytes() == b"real"
        assert not (target / path).is_symlink()
    assert sorted(each.name for each in linked.iterdir()) == ["nowhere", "out"]
    assert (target / "real.txt").stat().st_ino == inode
    told = sorted((row.path, row.outcome) for row in rows)
    assert told == sorted(
        [
            *((path, "copied") for path in ("real.txt", *LINKED)),
            ("nowhere", "skipped"),
            ("out", "skipped"),
        ]
    )


def test_a_move_that_keeps_links_takes_them_away(linked: Path, tmp_path: Path) -> None:
    """Also those to folders and to nowhere; one that may not be made stays; files are renamed."""
    (linked / "to-d").symlink_to("d")
    inode = (linked / "real.txt").stat().st_ino
    target = tmp_path / "target"
    report = move_tree(f"{linked}/", target, links="keep")
    assert [row.path for row in report.problems] == ["out"]
    assert [each.name for each in linked.iterdir()] == ["out"]
    for path, text in {**LINKED, "to-d": "d", "nowhere": "nothing"}.items():
        assert os.readlink(target / path) == text
    assert (target / "real.txt").stat().st_ino == inode


def test_a_link_that_cannot_be_moved_has_one_row(linked: Path, tmp_path: Path) -> None:
    """It stays, and what it leads to is not taken for it."""
    target = tmp_path / "target"
    target.mkdir()
    (target / "z-link").write_bytes(b"another")
    rows: list[Row] = []
    report = move_tree(f"{linked}/", target, if_not_exists=True, on_event=rows.append)
    assert [(row.path, row.outcome) for row in rows if row.path == "z-link"] == [
        ("z-link", "failed")
    ]
    assert report.exit_code == 3
    assert (linked / "z-link").is_symlink()
    assert (target / "z-link").read_bytes() == b"another"


def test_links_that_are_named_are_moved_once(linked: Path, tmp_path: Path) -> None:
    """By ``files_from``, or one alone: what has gone first is not missed afterwards."""
    rows: list[Row] = []
    named = ["a-link", "real.txt", "z-to-a-link"]
    target = tmp_path / "target"
    report = move_tree(f"{linked}/", target, files_from=named, on_event=rows.append)
    assert report.ok, report.problems
    assert sorted((row.path, row.outcome) for row in rows) == [(path, "copied") for path in named]
    (linked / "z-link").unlink()
    (linked / "z-link").symlink_to("d/up")
    (linked / "real.txt").write_bytes(b"again")
    report = move_tree(linked / "z-link", tmp_path / "alone")
    assert report.ok, report.problems
    assert (tmp_path / "alone" / "z-link").read_bytes() == b"again"
    assert not (linked / "z-link").is_symlink()


def test_links_at_the_target_are_deleted_as_links(linked: Path, tmp_path: Path) -> None:
    """A sync that keeps links deletes those that the source lacks, wherever they lead."""
    target = tmp_path / "target"
    target.mkdir()
    for name, text in {"old-file": "real.txt", "old-nowhere": "x", "old-folder": "d"}.items():
        (target / name).symlink_to(text)
    (linked / "out").unlink()
    report = sync_tree(f"{linked}/", target, delete=True, links="keep")
    assert report.ok, report.problems
    assert report.totals.of("deleted").objects == 3
    assert not [each.name for each in target.iterdir() if each.name.startswith("old")]
