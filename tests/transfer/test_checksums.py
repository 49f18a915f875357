"""``--compare checksum`` where checksums are not told: refused at once, or read."""

from __future__ import annotations

from pathlib import Path

import pytest

from calque.errors import Unsupported
from calque.operator import Operator
from calque.operator.layers import Call
from calque.store.embedded import EmbeddedStore, StoreOptions
from calque.transfer.api import copy_tree
from calque.transfer.model import Row
from tests.transfer.conftest import MakeTree, objects_of


def test_services_without_a_common_one(make_tree: MakeTree, tmp_path: Path) -> None:
    """The store tells none: nothing is written, not even what is new; --download reads both, and
    finds a change that size and time do not show."""
    store = EmbeddedStore.create(tmp_path / "data", StoreOptions())
    store.close()
    source = make_tree("source", {"same": b"1", "other": b"2", "new": b"3"})
    with Operator.from_uri("calque://bucket", project=str(tmp_path / "data")) as opened:
        opened.service._project.create_bucket("bucket")  # type: ignore[attr-defined]
        opened.write("same", b"1")
        opened.write("other", b"x")
        with pytest.raises(Unsupported, match="no checksum in common"):
            copy_tree(f"{source}/", opened, compare="checksum")
        assert objects_of(opened) == {"same": b"1", "other": b"x"}
        rows: list[Row] = []
        report = copy_tree(
            f"{source}/", opened, compare="checksum", download=True, on_event=rows.append
        )
        assert report.ok
        assert {row.path: row.outcome for row in rows} == {
            "same": "up to date",
            "other": "copied",
            "new": "copied",
        }


def test_an_object_that_cannot_be_compared_fails_alone(
    make_tree: MakeTree,
) -> None:
    """It is one failed entry with its reason; the others are compared and copied."""
    source = make_tree("source", {"a": b"1", "b": b"2", "c": b"3"})
    target = Operator.from_uri("memory://")
    for name in "abc":
        target.write(name, b"x")
    reading = source / "b"

    def vanish(call: Call, proceed):  # type: ignore[no-untyped-def]
        if call.verb == "read" and call.path == "b":
            reading.unlink(missing_ok=True)
        return proceed(call)

    with Operator.from_uri(source, layers=(vanish,)) as origin:
        rows: list[Row] = []
        report = copy_tree(origin, target, compare="checksum", on_event=rows.append)
    assert report.exit_code == 3
    told = {row.path: (row.outcome, row.error) for row in rows}
    assert told == {"a": ("copied", None), "b": ("failed", "NotFound"), "c": ("copied", None)}
    assert target.read("b") == b"x"
