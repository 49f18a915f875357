"""A whole tree slows down together, and ends all the same."""

from __future__ import annotations

import time

import calque
from calque.operator import Operator
from calque.operator.layers import Retry
from calque.transfer.model import Row
from tests.servers.proxy import Fault, FaultProxy, Reply
from tests.servers.seaweedfs import S3Server
from tests.transfer.conftest import MakeTree, objects_of, s3_options

_SLOW = b"<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"


class Told:
    """When rows were told."""

    def __init__(self) -> None:
        self._moments: list[float] = []

    def __call__(self, row: Row) -> None:
        self._moments.append(time.monotonic())

    @property
    def seconds(self) -> float:
        """From the first to the last."""
        return max(self._moments) - min(self._moments)


def test_every_third_request_refused(
    make_tree: MakeTree, tree_bucket: S3Server, s3: Operator
) -> None:
    """All is copied, with no more than half as many requests again."""
    files = {f"{number:03d}": b"x" for number in range(60)}
    source = make_tree("source", files)
    with FaultProxy(tree_bucket.endpoint) as proxy:
        third = Fault(
            method="PUT",
            where=lambda each: each.number % 3 == 0,
            times=None,
            reply=Reply(503, {}, _SLOW),
        )
        proxy.add(third)
        options = {**s3_options(tree_bucket), "endpoint_url": proxy.endpoint}
        report = calque.copy_tree(f"{source}/", s3.location(""), target_options=options)
        assert report.ok, report.problems
        assert proxy.count(method="PUT") <= len(files) * 1.6
    assert objects_of(s3) == files


def test_one_object_refused_again_and_again(
    make_tree: MakeTree, tree_bucket: S3Server, s3: Operator
) -> None:
    """Nine times: more often than any other error is borne, and it is copied all the same."""
    source = make_tree("source", {"a": b"x", "b": b"y"})
    with FaultProxy(tree_bucket.endpoint) as proxy:
        proxy.add(Fault(method="PUT", contains="/b", times=9, reply=Reply(503, {}, _SLOW)))
        options = {**s3_options(tree_bucket), "endpoint_url": proxy.endpoint}
        layer = Retry(refusals=16, first=0.01, longest=0.05)
        with Operator.from_uri(s3.location(""), layers=(layer,), **options) as target:
            report = calque.copy_tree(f"{source}/", target)
        assert report.ok, report.problems
        assert proxy.count(method="PUT", contains="/b") == 10


def test_an_operator_that_is_handed_in_slows_down_too(
    make_tree: MakeTree, tree_bucket: S3Server, s3: Operator
) -> None:
    """What the tree adds to it sees each attempt, not the last alone: so each is counted."""
    source = make_tree("source", {"a": b"x", "b": b"y"})

    def requests(refusals: int) -> int:
        slow = Fault(method="PUT", contains="/b", times=refusals, reply=Reply(503, {}, _SLOW))
        with FaultProxy(tree_bucket.endpoint) as proxy:
            proxy.add(slow)
            options = {**s3_options(tree_bucket), "endpoint_url": proxy.endpoint}
            with Operator.from_uri(f"{s3.location('')}{refusals}", **options) as target:
                report = calque.copy_tree(f"{source}/", target)
        assert report.ok, report.problems
        return report.totals.requests

    assert requests(2) == requests(0) + 2


def test_a_rate_bounds_the_requests_of_a_tree(
    make_tree: MakeTree, tree_bucket: S3Server, s3: Operator
) -> None:
    """However many workers there are: from the first row to the last it takes as long as it must,
    but for what may go at once."""
    source, told = make_tree("source", {f"{number:02}": b"x" for number in range(40)}), Told()
    options = s3_options(tree_bucket)
    report = calque.copy_tree(
        f"{source}/",
        s3.location(""),
        rate=10.0,
        concurrent=16,
        target_options=options,
        on_event=told,
    )
    assert report.ok, report.problems
    assert told.seconds >= 2.0


def test_a_bandwidth_bounds_the_bytes_of_a_tree(make_tree: MakeTree, s3: Operator) -> None:
    """All objects together keep it, not each by itself."""
    files = {f"{number:02}": bytes(10_000) for number in range(40)}
    source, told = make_tree("source", files), Told()
    report = calque.copy_tree(f"{source}/", s3, bandwidth=100_000, concurrent=16, on_event=told)
    assert report.ok, report.problems
    assert told.seconds >= 2.0
