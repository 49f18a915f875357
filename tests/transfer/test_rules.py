"""Which objects are taken for equal, and which rule says so."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from calque.errors import Unsupported
from calque.operator import Operator
from calque.operator.capability import Capability
from calque.transfer.api import copy_tree, sync_tree
from calque.transfer.model import Pair, Row
from calque.transfer.plan.copied_before import Remembered
from calque.transfer.plan.rules import Comparison, checksums
from calque.transfer.plan.side import Side
from calque.transfer.request.options import Compare
from calque.values import Checksum, Metadata
from tests.transfer.conftest import MakeTree, files_of, objects_of

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
ONE, TWO = "0" * 31 + "1", "0" * 31 + "2"
PARTS, OTHER_PARTS = ONE + "-3", TWO + "-2"
_numbers = count()


def object_of(
    etag: str | None = None,
    *,
    size: int = 5,
    seconds: float = 0,
    checksum: Checksum | None = None,
) -> Metadata:
    when = NOON + timedelta(seconds=seconds)
    return Metadata(path="a", size=size, etag=etag, last_modified=when, checksum=checksum)


@pytest.fixture
def sides() -> tuple[Side, Side]:
    """Two services whose ETags are MD5s."""
    first, second = (Operator.from_uri("memory://") for _ in range(2))
    return Side(first.service), Side(second.service)


CASES: list[tuple[str, Compare, Metadata, Metadata, str, str]] = [
    ("size", "default", object_of(size=4), object_of(), "copy", "size"),
    ("equal MD5s", "default", object_of(ONE, seconds=9), object_of(ONE), "keep", "checksum"),
    ("other MD5s", "default", object_of(ONE), object_of(TWO, seconds=9), "copy", "checksum"),
    ("equal parts", "default", object_of(PARTS, seconds=9), object_of(PARTS), "keep", "checksum"),
    ("other parts: unknown", "default", object_of(PARTS), object_of(OTHER_PARTS), "keep", "time"),
    ("parts and an MD5: unknown", "default", object_of(PARTS), object_of(ONE), "keep", "time"),
    ("parts, newer", "default", object_of(PARTS, seconds=9), object_of(ONE), "copy", "time"),
    (
        "checksums of one kind",
        "default",
        object_of(checksum=Checksum("crc32c", "AAAA"), seconds=9),
        object_of(checksum=Checksum("crc32c", "AAAA")),
        "keep",
        "checksum",
    ),
    (
        "checksums of two kinds",
        "default",
        object_of(checksum=Checksum("crc32c", "AAAA")),
        object_of(checksum=Checksum("crc32", "BBBB")),
        "keep",
        "time",
    ),
    ("newer source", "default", object_of(seconds=1), object_of(), "copy", "time"),
    ("older source", "default", object_of(), object_of(seconds=1), "keep", "time"),
    ("by size", "size", object_of(ONE, seconds=9), object_of(TWO), "keep", "size"),
    ("by time", "time", object_of(ONE), object_of(TWO, seconds=9), "keep", "time"),
    ("always", "always", object_of(ONE), object_of(ONE), "copy", "always"),
    ("never", "never", object_of(size=4), object_of(), "keep", "never"),
]


@pytest.mark.parametrize(
    ("mode", "source", "target", "step", "rule"),
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
def test_the_first_rule_that_can_tell_decides(
    sides: tuple[Side, Side],
    mode: Compare,
    source: Metadata,
    target: Metadata,
    step: str,
    rule: str,
) -> None:
    """Size, checksum, identity, time; an ETag of parts that differs says nothing."""
    decided = Comparison(mode, *sides).decide(Pair("a", source, target))
    assert (decided.step, decided.rule) == (step, rule)


def test_what_we_copied_is_known_again(sides: tuple[Side, Side]) -> None:
    """Although ETags differ and the clock of the target is behind; a change of either is found.

    Of two that both have changed nothing is known, and the times decide.
    """
    remembered = Remembered.of(*sides)
    assert remembered is not None
    source, made = object_of(ONE, seconds=99), object_of(TWO)
    remembered.keep("a", source, made)
    remembered.close()
    again = Remembered.of(*sides)
    compare = Comparison("default", *sides, again)

    def said(ours: Metadata, theirs: Metadata) -> tuple[str, str]:
        decided = compare.decide(Pair("a", ours, theirs))
        return decided.step, decided.rule

    assert said(source, made) == ("keep", "identity")
    assert said(object_of(PARTS), made) == ("copy", "identity")
    assert said(source, object_of(OTHER_PARTS, seconds=100)) == ("copy", "identity")
    assert said(object_of(PARTS), object_of(OTHER_PARTS, seconds=100)) == ("keep", "time")


def test_times_are_compared_at_the_coarser_step(
    make_tree: MakeTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A side that tells whole seconds never makes the other look newer by a fraction."""
    sides = [Side(Operator.from_uri("memory://").service) for _ in range(2)]
    coarse = Capability(step_of_times=1.0)
    monkeypatch.setattr(type(sides[1].service), "capability", coarse)
    compare = Comparison("time", *sides)
    for seconds, step in ((0.0, "keep"), (0.99, "keep"), (1.0, "copy")):
        pair = Pair("a", object_of(seconds=seconds), object_of())
        assert compare.decide(pair).step == step


def test_only_etags_of_32_digits_are_md5s() -> None:
    """And only where the service says that they are."""
    can, cannot = Capability(etags_are_md5=True), Capability()
    assert "md5" in checksums(can, object_of(ONE))
    for etag in (PARTS, ONE[:-1], ONE.replace("0", "g"), None):
        assert checksums(can, object_of(etag)) == {}
    assert checksums(cannot, object_of(ONE)) == {}


@pytest.fixture
def target() -> Iterator[Operator]:
    with Operator.from_uri(f"memory://rules{next(_numbers)}") as operator:
        yield operator


def test_same_size_and_older_time_are_found_by_checksum_alone(
    make_tree: MakeTree, target: Operator
) -> None:
    """``time`` and ``size`` do not find it, as is documented; ``checksum`` reads the file."""
    source = make_tree("source", {"a": b"12345", "b": b"same"})
    copy_tree(f"{source}/", target)
    old = (source / "a").stat().st_mtime - 1000
    (source / "a").write_bytes(b"54321")
    os.utime(source / "a", (old, old))
    for mode in ("size", "time"):
        assert copy_tree(f"{source}/", target, compare=mode).totals.of("copied").objects == 0
    report = copy_tree(f"{source}/", target, compare="checksum")
    assert (report.totals.of("copied").objects, report.totals.of("up to date").objects) == (1, 1)
    assert objects_of(target) == files_of(source)


def test_a_changed_file_of_the_same_size_and_an_older_time_is_found_by_what_we_wrote(
    make_tree: MakeTree, target: Operator
) -> None:
    """The default knows which source it copied, so a file that was moved into place is seen."""
    source = make_tree("source", {"a": b"12345"})
    copy_tree(f"{source}/", target)
    other = make_tree("other", {"a": b"54321"})
    os.utime(other / "a", (1, 1))
    (other / "a").replace(source / "a")
    report = copy_tree(f"{source}/", target)
    assert report.totals.by_rule == {"identity": 1}
    assert target.read("a") == b"54321"


def test_checksums_that_no_side_shares_are_refused(
    make_tree: MakeTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``--compare checksum`` says so instead of copying on a guess."""
    source, other = (Operator.from_uri("memory://") for _ in range(2))
    for operator in (source, other):
        operator.write("a", b"1")
    target = make_tree("target", {"a": b"1"})
    assert copy_tree(source, target, compare="checksum").totals.by_rule == {"checksum": 1}
    service = type(source.service)
    stat = service.stat
    monkeypatch.setattr(service, "capability", Capability())
    monkeypatch.setattr(
        service, "stat", lambda self, path: replace(stat(self, path), checksum=None)
    )
    listed = service.list
    monkeypatch.setattr(
        service,
        "list",
        lambda self, prefix, **rest: (
            replace(entry, checksum=None) for entry in listed(self, prefix, **rest)
        ),
    )
    with pytest.raises(Unsupported, match="no checksum in common"):
        copy_tree(source, other, compare="checksum")


def test_the_same_listings_give_the_same_plan(make_tree: MakeTree, target: Operator) -> None:
    """Twice, byte for byte."""
    source = make_tree("source", {f"{n}/{m}": b"x" * m for n in range(5) for m in range(20)})
    copy_tree(f"{source}/", target, exclude=["1/"])
    plans = []
    for _ in range(2):
        rows: list[Row] = []
        sync_tree(f"{source}/", target, delete=True, dry_run=True, on_event=rows.append)
        plans.append([row.to_json() for row in rows])
    assert plans[0] == plans[1]
    assert len(plans[0]) == 100
