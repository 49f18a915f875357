"""How many requests a tree costs, counted before a real server."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from urllib.parse import unquote

import pytest

from calque.operator import Operator
from calque.transfer.api import copy_tree, sync_tree
from tests.servers.proxy import Exchange, Fault, FaultProxy, Reply
from tests.servers.seaweedfs import S3Server
from tests.transfer.conftest import MakeTree, files_of, s3_options

OBJECTS, PAGE = 60, 25
PAGES = -(-OBJECTS // PAGE)
MIB = 1024 * 1024
_numbers = count()


@pytest.fixture
def proxy(tree_bucket: S3Server) -> Iterator[FaultProxy]:
    """The server as the runs reach it."""
    with FaultProxy(tree_bucket.endpoint) as running:
        yield running


@pytest.fixture
def options(tree_bucket: S3Server, proxy: FaultProxy) -> dict[str, object]:
    """Options of the service, with small pages and parts."""
    return {
        **s3_options(tree_bucket),
        "endpoint_url": proxy.endpoint,
        "page_size": PAGE,
        "threshold": 6 * MIB,
        "part_size": 5 * MIB,
        "write_part": 5 * MIB,
    }


@pytest.fixture
def root() -> str:
    return f"s3://trees/requests{next(_numbers)}"


@pytest.fixture
def source(make_tree: MakeTree) -> Path:
    """A folder of small files."""
    return make_tree("source", {f"{n % 4}/{n:03}": os.urandom(n + 1) for n in range(OBJECTS)})


def is_listing(exchange: Exchange) -> bool:
    return exchange.method == "GET" and "list-type=2" in exchange.target


def others(proxy: FaultProxy) -> list[tuple[str, str]]:
    """Requests that are no listings."""
    return [(each.method, each.target) for each in proxy.log if not is_listing(each)]


def listings(proxy: FaultProxy) -> int:
    return sum(map(is_listing, proxy.log))


def test_one_request_an_object_and_none_when_nothing_changed(
    source: Path, tmp_path: Path, proxy: FaultProxy, options: dict[str, object], root: str
) -> None:
    """Up, across and down: one PUT, one copy, one GET each; again: the two listings alone."""
    ways = [
        (f"{source}/", f"{root}/a/", "PUT"),
        (f"{root}/a/", f"{root}/b/", "PUT"),
        (f"{root}/b/", f"{tmp_path}/back/", "GET"),
    ]
    for origin, target, method in ways:
        sides = [each for each in (origin, target) if each.startswith("s3")]
        proxy.reset()
        report = copy_tree(origin, target, source_options=options, target_options=options)
        assert report.totals.of("copied").objects == OBJECTS, report.problems
        assert [each for each, _ in others(proxy)] == [method] * OBJECTS
        proxy.reset()
        report = sync_tree(
            origin, target, delete=True, source_options=options, target_options=options
        )
        assert report.totals.of("up to date").objects == OBJECTS
        assert others(proxy) == []
        assert listings(proxy) == PAGES * len(sides)
        assert report.totals.requests >= listings(proxy)
    assert files_of(tmp_path / "back") == files_of(source)


def test_a_server_side_run_moves_no_byte(
    source: Path, proxy: FaultProxy, options: dict[str, object], root: str
) -> None:
    """Small and large: no body of an object passes the client, and the report counts them apart."""
    (source / "large").write_bytes(os.urandom(12 * MIB))
    copy_tree(f"{source}/", f"{root}/a/", target_options=options)
    proxy.reset()
    report = copy_tree(f"{root}/a/", f"{root}/b/", source_options=options, target_options=options)
    assert report.totals.by_route["server-side"].objects == OBJECTS + 1
    assert "through the client" not in report.totals.by_route
    assert [each for each in proxy.log if each.method == "GET" and not is_listing(each)
            and "?" not in each.target] == []  # fmt: skip
    assert sum(len(each.body) for each in proxy.log) < MIB


def test_a_dry_run_sends_nothing_that_writes_and_predicts(
    source: Path, proxy: FaultProxy, options: dict[str, object], root: str
) -> None:
    """GET and HEAD alone; then the same objects, for the same reasons, with the same bytes."""
    copy_tree(f"{source}/0/", f"{root}/a/0/", target_options=options)
    (source / "0" / "000").write_bytes(b"another size")
    (source / "0" / "004").unlink()
    proxy.reset()
    rows = []
    dry = sync_tree(
        f"{source}/",
        f"{root}/a/",
        delete=True,
        dry_run=True,
        on_event=rows.append,
        target_options=options,
    )
    assert {each.method for each in proxy.log} <= {"GET", "HEAD"}
    done = []
    real = sync_tree(
        f"{source}/", f"{root}/a/", delete=True, on_event=done.append, target_options=options
    )
    predicted = sorted((row.path, row.outcome, row.rule, row.size) for row in rows)
    assert predicted == sorted((row.path, row.outcome, row.rule, row.size) for row in done)
    assert dry.totals.of("copied") == real.totals.of("copied")
    assert {row.outcome for row in rows} == {"copied", "up to date", "deleted"}


@pytest.mark.parametrize("most", [1, 3])
def test_no_more_requests_in_flight_than_asked_for(
    source: Path,
    tmp_path: Path,
    proxy: FaultProxy,
    options: dict[str, object],
    root: str,
    most: int,
) -> None:
    """--concurrent bounds listings, small objects and parts of large ones together."""
    (source / "large").write_bytes(os.urandom(12 * MIB))
    (source / "two parts").write_bytes(os.urandom(6 * MIB))
    for origin, target in (
        (f"{source}/", f"{root}/a/"),
        (f"{root}/a/", f"{root}/b/"),
        (f"{root}/b/", f"{tmp_path}/back/"),
    ):
        proxy.reset()
        proxy.add(Fault(times=None, delay=0.005))
        report = copy_tree(
            origin, target, concurrent=most, source_options=options, target_options=options
        )
        assert report.ok, report.problems
        assert proxy.max_in_flight <= most
    assert files_of(tmp_path / "back") == files_of(source)


def test_page_borders(proxy: FaultProxy, options: dict[str, object], root: str) -> None:
    """One less than pages, exactly pages, one more; a page of nothing but filtered keys."""
    operator = Operator.from_uri(root, **options)
    expected = 0
    for wanted in (PAGE - 1, PAGE, PAGE + 1, 2 * PAGE):
        for number in range(expected, wanted):
            operator.write(f"{number:04}", b"x")
        expected = wanted
        target = Operator.from_uri(f"memory://borders{wanted}")
        report = copy_tree(f"{root}/", target, source_options=options)
        assert report.totals.of("copied").objects == wanted
        assert len(list(target.list())) == wanted
        filtered = [f"{number:04}" for number in range(PAGE)]
        left = copy_tree(
            f"{root}/",
            Operator.from_uri("memory://"),
            exclude=filtered,
            source_options=options,
        )
        assert left.totals.of("copied").objects == max(0, wanted - PAGE)


def test_deletes_go_in_batches_and_a_refused_key_fails_alone(
    source: Path, proxy: FaultProxy, options: dict[str, object], root: str
) -> None:
    """One request for all; an object that was rewritten meanwhile survives and is told."""
    batched = {**options, "delete_many": True}
    copy_tree(f"{source}/", f"{root}/", target_options=options)
    for file in source.glob("[123]/*"):
        file.unlink()
    operator = Operator.from_uri(root, **options)
    proxy.reset()
    proxy.add(
        Fault(
            method="POST",
            contains="delete",
            hook=lambda exchange: operator.write("1/001", b"rewritten meanwhile"),
        )
    )
    report = sync_tree(
        f"{source}/", f"{root}/", delete=True, max_delete="100%", target_options=batched
    )
    assert proxy.count("POST", "delete") == 1
    assert proxy.count("DELETE") == 0
    assert [(row.path, row.error) for row in report.problems] == [("1/001", "ConditionNotMatch")]
    assert report.totals.of("deleted").objects == OBJECTS * 3 // 4 - 1
    assert report.exit_code == 3
    left = {entry.path for entry in operator.list()}
    assert left == {str(each.relative_to(source)) for each in source.glob("0/*")} | {"1/001"}


@pytest.mark.parametrize("code", ["MalformedXML", "AccessDenied"])
def test_a_batch_that_is_refused_whole(
    source: Path, proxy: FaultProxy, options: dict[str, object], root: str, code: str
) -> None:
    """One that cannot be read is sent key by key, for one odd key may have spoilt it; any other
    refusal is that of each of its keys, and nothing is told as deleted."""
    copy_tree(f"{source}/", f"{root}/", target_options=options)
    for file in source.glob("[123]/*"):
        file.unlink()
    proxy.reset()
    status, gone = (400, OBJECTS * 3 // 4) if code == "MalformedXML" else (403, 0)
    body = f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()
    refusal = Reply(status, {"content-type": "application/xml"}, body)
    proxy.add(Fault(method="POST", contains="delete", times=None, reply=refusal))
    batched = {**options, "delete_many": True}
    report = sync_tree(
        f"{source}/", f"{root}/", delete=True, max_delete="100%", target_options=batched
    )
    assert report.totals.of("deleted").objects == gone
    assert len(report.problems) == OBJECTS * 3 // 4 - gone
    left = sum(1 for _ in Operator.from_uri(root, **options).list())
    assert left == OBJECTS - gone


def test_an_anchored_include_narrows_the_listings(
    source: Path, proxy: FaultProxy, options: dict[str, object], root: str
) -> None:
    """Where all else is excluded only the included folder is asked for, on either side."""
    copy_tree(f"{source}/", f"{root}/a/", target_options=options)
    proxy.reset()
    folder = next(path.name for path in sorted(source.iterdir()) if path.is_dir())
    report = copy_tree(
        f"{root}/a/",
        f"{root}/b/",
        include=[f"/{folder}/**"],
        exclude=["**"],
        source_options=options,
        target_options=options,
    )
    wanted = sum(1 for path in (source / folder).rglob("*") if path.is_file())
    assert report.totals.of("copied").objects == wanted, report.problems
    asked = [unquote(each.target) for each in proxy.log if is_listing(each)]
    assert asked
    assert all(f"/{folder}/" in each.partition("prefix=")[2] for each in asked), asked


def test_no_thread_is_started_for_an_object(
    source: Path,
    tmp_path: Path,
    options: dict[str, object],
    root: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Up, across and down the workers do it all: as many as asked for, listers, a journal."""
    started: list[str] = []
    start = threading.Thread.start

    def note(thread: threading.Thread) -> None:
        started.append(thread.name)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", note)
    ways = [(f"{source}/", f"{root}/a/"), (f"{root}/a/", f"{root}/b/"), (f"{root}/b/", tmp_path)]
    for origin, target in ways:
        started.clear()
        report = copy_tree(
            origin, target, concurrent=4, source_options=options, target_options=options
        )
        assert report.totals.of("copied").objects == OBJECTS
        ours = [name for name in started if name.startswith("calque")]
        assert len(ours) <= 4 + 4 + 1, ours
