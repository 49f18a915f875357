"""One large object among small ones: it does not wait behind them, and does not hold them up."""

from __future__ import annotations

import time

import calque
from calque.operator import Operator
from tests.servers.proxy import Exchange, Fault, FaultProxy
from tests.servers.seaweedfs import S3Server
from tests.transfer.conftest import MakeTree, objects_of, s3_options

SMALL = 40
MIB = 1024 * 1024


def is_part(each: Exchange) -> bool:
    """A part of the large one; not the mark by which an upload is known to be ours."""
    return "partNumber=" in each.target and "partNumber=10000" not in each.target


def is_small(each: Exchange) -> bool:
    return each.method == "PUT" and "partNumber=" not in each.target


def test_neither_waits_for_the_other(
    make_tree: MakeTree, tree_bucket: S3Server, s3: Operator
) -> None:
    """Its parts do not arrive before all small ones have: those go on by the places that are left,
    although it was begun, last in the order of keys, before most of them."""
    files = {f"{number:03}": b"x" for number in range(SMALL)} | {"z": bytes(12 * MIB)}
    source = make_tree("source", files)
    with FaultProxy(tree_bucket.endpoint) as proxy:

        def hold(_: Exchange) -> None:
            until = time.monotonic() + 100
            while sum(map(is_small, list(proxy.log))) < SMALL and time.monotonic() < until:
                time.sleep(0.01)

        proxy.add(Fault(where=is_part, times=None, hook=hold))
        proxy.add(Fault(where=is_small, times=None, delay=0.1))
        options = {**s3_options(tree_bucket), "endpoint_url": proxy.endpoint}
        report = calque.copy_tree(
            f"{source}/", s3.location(""), concurrent=4, chunk=5 * MIB, target_options=options
        )
        seen = list(proxy.log)
    assert report.ok, report.problems
    kinds = [
        "part" if is_part(each) else "small" for each in seen if is_part(each) or is_small(each)
    ]
    assert kinds.index("part") < len(kinds) - kinds[::-1].index("small") - 1
    assert objects_of(s3) == files
