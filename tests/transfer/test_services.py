"""Trees between services of every kind: there, back, across, and nothing the second time."""

from __future__ import annotations

import importlib
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from calque.operator import Operator
from calque.transfer.api import PreparedRun, copy_tree, move_tree, remove_tree, sync_tree
from calque.transfer.request.options import TreeOptions
from calque.transfer.request.tree_request import TreeRequest
from tests.operator.behaviour.case import Case
from tests.transfer.conftest import MakeTree, files_of, objects_of

SERVICES = ["fs", "memory", "s3_seaweedfs", "gcs", "azblob", "calque"]
MIB = 1024 * 1024
FILES = {
    "empty": b"",
    "one": b"1",
    "dir/a.json": b"{}",
    "dir-2/with space +%&.txt": b"text",
    "dir.x/\u00e9\u00e8 \U0001f600": b"unicode",
    "deep/er/and/deeper": os.urandom(1000),
    "large": os.urandom(9 * MIB),
}


@pytest.fixture(scope="module")
def open_case() -> Iterator[Callable[[str], Case]]:
    """Starts the server of a service once."""
    with ExitStack() as held:

        @cache
        def start(name: str) -> Case:
            module = importlib.import_module(f"tests.operator.behaviour.cases.{name}")
            return held.enter_context(module.open_case())  # type: ignore[no-any-return]

        yield start


@pytest.fixture
def roots(
    request: pytest.FixtureRequest, open_case: Callable[[str], Case]
) -> Iterator[tuple[Operator, Operator]]:
    """Two roots of the service of this case."""
    case = open_case(request.param)
    with ExitStack() as held:
        first, second = (
            held.enter_context(case.open(f"t{uuid.uuid4().hex[:12]}")) for _ in range(2)
        )
        yield first, second


@pytest.mark.parametrize("roots", SERVICES, indirect=True)
def test_there_across_and_back(
    roots: tuple[Operator, Operator], make_tree: MakeTree, tmp_path: Path
) -> None:
    """Equal trees at each step; a second run copies nothing; what is deleted is deleted there."""
    source, (first, second) = make_tree("source", FILES), roots
    up = copy_tree(f"{source}/", first, verify=True)
    assert up.ok, up.problems or up.refutations
    assert up.verified == len(FILES)
    assert objects_of(first) == FILES
    across = copy_tree(first, second, verify=True)
    assert across.ok, across.problems or across.refutations
    assert objects_of(second) == FILES
    assert across.totals.of("copied").objects == len(FILES)
    if first.capability.copy and first.scheme != "fs" and first.scheme != "memory":
        assert set(across.totals.by_route) == {"server-side"}
    back = tmp_path / "back"
    down = copy_tree(second, back)
    assert down.ok, down.problems
    assert files_of(back) == FILES
    for origin, goal in ((f"{source}/", first), (first, second), (second, back)):
        again = sync_tree(origin, goal, delete=True)
        assert again.totals.of("up to date").objects == len(FILES), again.totals.by_rule
        assert again.totals.of("copied").objects == again.totals.of("deleted").objects == 0
    (source / "one").unlink()
    (source / "dir/a.json").write_bytes(b"changed")
    changed = sync_tree(f"{source}/", first, delete=True)
    assert changed.ok, changed.problems
    assert objects_of(first) == files_of(source)


@pytest.mark.parametrize("roots", SERVICES, indirect=True)
def test_a_move_leaves_nothing_behind(
    roots: tuple[Operator, Operator], make_tree: MakeTree
) -> None:
    """All is at the target, nothing at the source."""
    first, second = roots
    small = {name: content for name, content in FILES.items() if name != "large"}
    for name, content in small.items():
        first.write(name, content)
    report = move_tree(first, second)
    assert report.ok, report.problems
    assert objects_of(second) == small
    assert objects_of(first) == {}


@pytest.mark.parametrize("roots", ["s3_seaweedfs", "gcs", "azblob", "calque"], indirect=True)
def test_headers_and_metadata_arrive(roots: tuple[Operator, Operator]) -> None:
    """Content headers and user metadata, small and large, into another service and back."""
    first, second = roots
    given = {"content_type": "text/x-odd", "cache_control": "no-store", "user": {"colour": "red"}}
    for name, size in (("small", 10), ("large", 9 * MIB)):
        first.write(name, os.urandom(size), **given)  # type: ignore[arg-type]
    memory = Operator.from_uri("memory://")
    for origin, goal in ((first, memory), (memory, second)):
        report = copy_tree(origin, goal)
        assert report.ok, report.problems
    for name in ("small", "large"):
        found = second.stat(name)
        assert found.content_type == "text/x-odd"
        assert found.cache_control == "no-store"
        assert dict(found.user)["colour"] == "red"


def test_content_types_are_those_of_the_names(make_tree: MakeTree) -> None:
    """Known ones by the name, one that was asked for over it, an unknown one unset."""
    source = make_tree(
        "source", {"a.json": b"{}", "b.csv.gz": b"", "c.unknown-thing": b"", "d": b""}
    )
    memory, other = (Operator.from_uri("memory://") for _ in range(2))
    copy_tree(f"{source}/", memory)
    types = {entry.path: memory.stat(entry.path).content_type for entry in memory.list()}
    assert types == {
        "a.json": "application/json",
        "b.csv.gz": "application/gzip",
        "c.unknown-thing": None,
        "d": None,
    }
    copy_tree(f"{source}/", other, content_type="text/plain")
    assert {other.stat(entry.path).content_type for entry in other.list()} == {"text/plain"}


@pytest.mark.parametrize("roots", ["s3_seaweedfs", "gcs", "azblob", "calque"], indirect=True)
def test_headers_and_tags_go_along(roots: tuple[Operator, Operator], tmp_path: Path) -> None:
    """Inside a service and across, small and in parts; what a file cannot keep is counted."""
    first, second = roots
    large = b"x" * (9 * MIB)
    other = Operator.from_uri(f"memory://{uuid.uuid4().hex}")
    labels = {"team": "a b", "y": "z"} if first.capability.tags else None
    for path, data in (("small", b"1"), ("large", large)):
        first.write(
            path,
            data,
            content_type="text/x-odd",
            cache_control="no-store",
            user={"k": "v"},
            tags=labels,
        )
    for target in (second, other):
        report = copy_tree(first, target)
        assert report.ok, report.problems
        for path in ("small", "large"):
            made = target.stat(path)
            assert (made.content_type, made.cache_control) == ("text/x-odd", "no-store"), path
            assert made.user["k"] == "v"
            if labels and target.capability.tags:
                assert dict(made.tags or {}) == labels, (path, target)
    first.write("cached", b"2", cache_control="no-store")
    down = copy_tree(first, tmp_path / "down", include=["small", "large"], exclude=["**"])
    assert down.ok, down.problems
    assert down.dropped == {"content headers and user metadata": 2}
    cached = copy_tree(first, tmp_path / "down", include=["cached"], exclude=["**"])
    assert cached.dropped == {"content headers and user metadata": 1}
    first.write("named.csv", b"3", content_type="text/csv")
    named = copy_tree(first, tmp_path / "down", include=["named.csv"], exclude=["**"])
    assert named.dropped == {}, "its name tells the same"
    if labels:
        bare = copy_tree(first, second, compare="always", carry_tags=False)
        assert bare.ok, bare.problems
        assert not second.stat("small").tags


@pytest.mark.parametrize("roots", SERVICES, indirect=True)
def test_deletes_are_asked_for_and_of_what_was_listed(roots: tuple[Operator, Operator]) -> None:
    """Without ``delete`` nothing goes; with it, what was rewritten since it was listed survives."""
    source, target = roots
    source.write("stays", b"1")
    for name in ("stays", "gone", "dir/rewritten"):
        target.write(name, b"1")
    assert sync_tree(source, target).ok
    assert sorted(objects_of(target)) == ["dir/rewritten", "gone", "stays"]

    def meddle(count: int, size: int, names: object) -> bool:
        target.write("dir/rewritten", b"meanwhile")
        return True

    options = TreeOptions(delete=True)
    request = TreeRequest(kind="sync", sources=[source], target=target, options=options)
    report = PreparedRun(request, confirm=meddle).run()
    assert [(row.path, row.error) for row in report.problems] == [
        ("dir/rewritten", "ConditionNotMatch")
    ]
    assert report.exit_code == 3
    assert objects_of(target) == {"dir/rewritten": b"meanwhile", "stays": b"1"}
    assert remove_tree(target, include=["**"]).ok
    assert objects_of(target) == {}
