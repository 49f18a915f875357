"""``verify``: what was copied is looked at once more, in a listing made after the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from calque.errors import PermissionDenied
from calque.operator import Operator
from calque.operator.layers import Fault, FaultInjection
from calque.transfer.api import PreparedRun, copy_tree, move_tree, sync_tree
from calque.transfer.model import Row
from calque.transfer.request.options import TreeOptions
from calque.transfer.request.tree_request import TreeRequest
from tests.servers.seaweedfs import S3Server
from tests.transfer.conftest import MakeTree, files_of, s3_options

FILES = {f"{folder}/{name}": b"12345" for folder in ("dir", "dir-2", "dir.x") for name in "abc"}


def test_each_copy_is_found_again(make_tree: MakeTree, tmp_path: Path, s3: Operator) -> None:
    """Up, down, between folders, moved: all that was copied is verified, and nothing else is."""
    source = make_tree("source", FILES)
    for verb, origin, target, count in (
        (copy_tree, f"{source}/", s3, len(FILES)),
        (copy_tree, s3, f"{tmp_path}/down/", len(FILES)),
        (sync_tree, f"{source}/", f"{tmp_path}/down/", 0),
        (move_tree, f"{tmp_path}/down/", f"{tmp_path}/moved/", len(FILES)),
    ):
        report = verb(origin, target, verify=True)
        assert report.ok, report.refutations
        assert report.verified == count
    assert copy_tree(f"{source}/", f"{tmp_path}/plain/").verified is None
    assert copy_tree(f"{source}/", f"{tmp_path}/dry/", verify=True, dry_run=True).verified is None


@pytest.mark.parametrize(
    ("kind", "harm"),
    [
        ("fs", "gone"),
        ("fs", "shorter"),
        ("s3", "gone"),
        ("s3", "shorter"),
        ("s3", "another"),
    ],
)
def test_a_target_that_is_not_as_told_is_named(
    make_tree: MakeTree, tmp_path: Path, s3: Operator, kind: str, harm: str
) -> None:
    """Deleted, cut or replaced behind our back: named with its reason, and the exit code is 3."""
    source = make_tree("source", FILES)
    target = s3 if kind == "s3" else Operator.from_uri(tmp_path / "target")
    told: list[Row] = []

    def spoil(row: Row) -> None:
        told.append(row)
        if len(told) < len(FILES):
            return
        if harm == "gone":
            target.delete("dir-2/b")
        else:
            target.write("dir-2/b", b"123" if harm == "shorter" else b"54321")

    goal = target if kind == "s3" else f"{tmp_path}/target/"
    report = copy_tree(f"{source}/", goal, verify=True, on_event=spoil)
    assert report.exit_code == 3
    assert (report.verified, report.refuted) == (len(FILES) - 1, 1)
    assert report.refutations[0].startswith("dir-2/b: it ")
    assert report.to_json()["refutations"] == report.refutations


def test_several_sources_are_each_looked_at_in_their_place(
    make_tree: MakeTree, tmp_path: Path
) -> None:
    """Folders by their names, what lies below one, and single files, in one run."""
    one, two = make_tree("one", FILES), make_tree("two", {"x": b"1", "one": b"2"})
    (tmp_path / "target" / "one").mkdir(parents=True)
    sources = [str(one), f"{two}/x", str(two)]
    report = copy_tree(sources, f"{tmp_path}/target/", verify=True)
    assert report.verified == len(FILES) + 3
    singles = copy_tree([f"{two}/x", f"{two}/one"], f"{tmp_path}/flat/", verify=True)
    assert singles.verified == 2


def test_markers_that_became_folders_are_there(s3: Operator, tmp_path: Path) -> None:
    """A folder is looked for as one: no listing of files shows it."""
    s3.write("a/file", b"1")
    s3.create_dir("empty/")
    report = copy_tree(s3, f"{tmp_path}/target/", verify=True)
    assert report.ok, report.refutations
    assert report.verified == report.totals.of("copied").objects


def test_it_costs_one_more_listing(
    make_tree: MakeTree, s3: Operator, tree_bucket: S3Server
) -> None:
    """No request for each object."""
    source = make_tree("source", {f"{number:02}": b"x" for number in range(30)})
    base, given = s3.location(""), s3_options(tree_bucket)
    plain = copy_tree(f"{source}/", f"{base}plain/", target_options=given)
    looked = copy_tree(f"{source}/", f"{base}looked/", target_options=given, verify=True)
    assert looked.verified == 30
    assert looked.totals.requests - plain.totals.requests == 1


def test_a_listing_that_fails_at_the_end_is_told(make_tree: MakeTree) -> None:
    """Copies stand; that they could not be verified is an error, and the exit code is 3."""
    source, target = make_tree("source", FILES), Operator.from_uri("memory://")
    broken = target.layer(
        FaultInjection(Fault(verb="list", nth=2, times=99, error=PermissionDenied("no")))
    )
    report = copy_tree(f"{source}/", broken, verify=True, journal=False)
    assert report.exit_code == 3
    assert "could not be verified" in report.error
    assert report.verified is None
    assert len(list(target.list())) == len(FILES)


def test_a_resumed_run_verifies_what_its_report_tells_of_the_first(
    make_tree: MakeTree, tmp_path: Path
) -> None:
    """With a report the copies of the process before are looked at, too."""
    source = make_tree("source", {f"{number:03}": b"x" for number in range(60)})
    target, rows = tmp_path / "target", str(tmp_path / "rows.jsonl")
    request = TreeRequest(
        kind="cp",
        sources=[f"{source}/"],
        target=f"{target}/",
        options=TreeOptions(concurrent=1, fsync="each", verify=True),
        report=rows,
    )
    seen: list[Row] = []

    def stop(row: Row) -> None:
        seen.append(row)
        if len(seen) == 10:
            first.stop()

    first = PreparedRun(request, on_event=stop)
    begun = first.run()
    assert begun.stopped
    assert begun.verified is None
    ended = PreparedRun(request).run()
    assert ended.resumed
    assert ended.verified == 60 == len(files_of(target))
