"""Copy, on every service."""

from collections.abc import Callable

import pytest

from calque.errors import (
    ConditionNotMatch,
    InvalidInput,
    IsADirectory,
    IsSameFile,
    NotFound,
    PathEscape,
)
from calque.operator import CopyOptions, Operator
from tests.operator.behaviour.case import Case, content
from tests.operator.recorder import Recorder


@pytest.fixture(autouse=True)
def _can_copy(need: Callable[..., None]) -> None:
    need("copy")


def test_bytes_are_equal_at_every_size(op: Operator, case: Case) -> None:
    """Empty, one byte, and one more or less than every border: the target has the same bytes."""
    for size in case.sizes:
        data = content(size)
        op.write("from", data)
        made = op.copy("from", f"to/{size}")
        assert made.path == f"to/{size}"
        assert made.size == size
        assert op.read(f"to/{size}") == data
        assert made.pin == op.stat(f"to/{size}").pin
    assert list(op.leftovers()) == []


def test_a_target_is_overwritten(op: Operator, case: Case) -> None:
    """A copy replaces what was there, on both sides of the threshold."""
    for size in (case.small, case.large):
        data = content(size)
        op.write("from", data)
        op.write("to", content(size + 5))
        op.copy("from", "to")
        assert op.read("to") == data


def test_copy_to_another_root(op: Operator, other: Operator, case: Case) -> None:
    """Between two roots of one service bytes stay on the server."""
    for size in (0, case.small, case.large):
        data = content(size)
        op.write("from", data)
        copier = op.copier("from", "deep/er/to", into=other)
        assert copier.route == "server-side"
        copier.run()
        assert other.read("deep/er/to") == data
    assert not op.exists("deep/er/to")


def test_a_missing_source_starts_nothing(op: Operator) -> None:
    """NotFound when the copier is made: no upload, no target."""
    seen = Recorder()
    with pytest.raises(NotFound) as raised:
        op.layer(seen).copier("missing", "to")
    assert "missing" in str(raised.value)
    assert set(seen.verbs) <= {"stat"}
    assert not op.exists("to")
    assert list(op.leftovers()) == []


@pytest.mark.parametrize(
    ("source", "target"), [("", "to"), ("from", ""), ("dir/", "to"), ("from", "dir/")]
)
def test_a_directory_is_refused_without_a_request(op: Operator, source: str, target: str) -> None:
    """IsADirectory, before anything is sent."""
    op.write("from", b"x")
    seen = Recorder()
    with pytest.raises(IsADirectory):
        op.layer(seen).copy(source, target)
    assert seen.calls == []


def test_copy_to_itself_harms_nothing(op: Operator, case: Case) -> None:
    """IsSameFile, and the source still has its bytes."""
    data = content(case.small)
    op.write("same", data)
    with pytest.raises(IsSameFile):
        op.copy("same", "same")
    with pytest.raises(IsSameFile):
        op.copy("same", "same", into=op)
    assert op.read("same") == data


@pytest.mark.parametrize(("source", "target"), [("../from", "to"), ("from", "a/../../to")])
def test_no_copy_leads_out_of_the_root(op: Operator, source: str, target: str) -> None:
    """PathEscape for source and target."""
    op.write("from", b"x")
    with pytest.raises(PathEscape):
        op.copy(source, target)


@pytest.mark.parametrize(
    "key",
    [
        "with space",
        "plus+plus",
        "per%cent %20 %2F",
        "what?and=this&that#there",
        "quotes'\"`",
        "back\\slash",
        "tilde~!$()*,;:@[]{}|^<>=",
        "ünïcödé/日本語",
        "🙂",
        " leading and trailing ",
        "a/b/c/d/e/f/g",
        ".hidden",
    ],
)
def test_keys_are_kept_exactly(op: Operator, case: Case, key: str) -> None:
    """Any key is copied from and to, encoded neither never nor twice; both paths."""
    if set(key) & set(op.capability.unfit_in_keys):
        with pytest.raises(InvalidInput):
            op.write(key, b"x")
        return
    for size in (case.small, case.parted):
        data = content(size)
        op.write(f"src/{key}", data)
        op.copy(f"src/{key}", f"dst/{key}")
        assert op.read(f"dst/{key}") == data
        assert [entry.path for entry in op.list("dst/")] == [f"dst/{key}"]


def test_a_listed_entry_is_copied(op: Operator, case: Case) -> None:
    """An entry of a listing stands for its object, metadata included; without a stat where the
    service says so; a directory entry is refused."""
    for size in (0, case.small, case.large):
        data = content(size)
        op.write("dir/from", data, **({"user": {"k": "v"}} if keeps(op) else {}))
        entry = next(op.list("dir/"))
        seen = Recorder()
        op.layer(seen).copy(entry, f"to{size}")
        assert op.read(f"to{size}") == data
        if keeps(op):
            assert dict(op.stat(f"to{size}").user) == {"k": "v"}
        if entry.pin and size <= op.capability.copy_listed_up_to > 0:
            assert seen.verbs[0] != "stat"
    with pytest.raises(IsADirectory):
        op.copy(next(op.list(recursive=False)), "to")


def test_a_listed_entry_that_was_replaced(op: Operator, case: Case) -> None:
    """Exactly the listed object is copied, or none."""
    for size in (case.small, case.large):
        data = content(size)
        op.write("from", data)
        entry = next(op.list("from"))
        if entry.pin is None:
            pytest.skip(f"{op.scheme} lists no pin")
        op.write("from", content(size))
        if op.capability.versions and entry.version:
            op.copy(entry, "to")
            assert op.read("to") == data
            continue
        with pytest.raises(ConditionNotMatch):
            op.copy(entry, "to")
        assert not op.exists("to")


def keeps(op: Operator) -> bool:
    return op.capability.user_metadata


def test_a_very_long_key(op: Operator) -> None:
    """Keys of 1,024 bytes of UTF-8 (the root among them), in segments a file system can hold."""
    root = len("t0123456789ab/")
    above = "/".join(["é" * 60] * 8) + "/"
    name = "x" * (1024 - root - len(above.encode()) - 1)
    keys = [f"{above}{name}{last}" for last in "ab"]
    assert {root + len(key.encode()) for key in keys} == {1024}
    op.write(keys[0], b"data")
    op.copy(*keys)
    assert op.read(keys[1]) == b"data"
    assert [entry.path for entry in op.list(above)] == keys


@pytest.mark.parametrize("count", [0, -1, 1.5, "4", True])
def test_concurrency_below_one_is_refused(op: Operator, count: int) -> None:
    """Bad input, before anything is sent."""
    op.write("from", b"x")
    with pytest.raises(InvalidInput):
        op.copy("from", "to", concurrent=count)
    with pytest.raises(InvalidInput):
        op.copy("from", "to", chunk=count)
    with pytest.raises(InvalidInput, match="checksum"):
        op.copy("from", "to", verify="perhaps")  # type: ignore[arg-type]
    assert not op.exists("to")


def test_a_chunk_may_be_chosen(op: Operator, case: Case) -> None:
    """Whatever chunk is asked for, the service's limits hold and the bytes are equal."""
    data = content(case.large)
    op.write("from", data)
    for chunk in (1 if case.part <= 1024 else case.part, case.part * 2, case.part * 1000):
        op.copy("from", "to", chunk=chunk)
        assert op.read("to") == data


def test_options_that_were_made_before(op: Operator) -> None:
    """copier_options takes a CopyOptions object, for one copy after another; nothing else."""
    options = CopyOptions(if_not_exists=op.capability.copy_with_if_not_exists, concurrent=2)
    op.write("from", b"data")
    for target in ("one", "two"):
        assert op.copier_options("from", target, options).run().size == 4
    with pytest.raises(InvalidInput):
        op.copier_options("from", "three", {"concurrent": 2})  # type: ignore[arg-type]
    assert sorted(entry.path for entry in op.list()) == ["from", "one", "two"]
