"""The memory service's own promises."""

import threading
from typing import get_args

import pytest

from calque.errors import CalqueError, InvalidInput, NotFound, Unsupported
from calque.operator import Operator
from calque.operator.drivers.verbs import Part
from calque.operator.services.memory.errors import ERRORS, Code, Refused, error_of
from calque.operator.services.memory.store import Condition, MemoryStore
from calque.values import Metadata


def test_no_refusal_is_unmapped() -> None:
    """Every code of the store has an error of ours, and its message says where."""
    assert set(ERRORS) == set(get_args(Code))
    for code in get_args(Code):
        error = error_of(Refused(code, "why"), "memory://x/y")
        assert isinstance(error, CalqueError)
        assert "memory://x/y" in str(error)


def test_operators_of_one_name_share_their_objects() -> None:
    """As long as one of them lives; a nameless one is alone."""
    one, two = Operator.from_uri("memory://shared"), Operator.from_uri("memory://shared/root")
    one.write("root/a", b"1")
    assert two.read("a") == b"1"
    assert not Operator.from_uri("memory://").exists("root/a")
    del one, two
    assert not Operator.from_uri("memory://shared").exists("root/a")


def test_different_stores_do_not_copy_between_themselves() -> None:
    """Unsupported; with leave the bytes pass through the client."""
    one, two = Operator.from_uri("memory://one"), Operator.from_uri("memory://two")
    one.write("a", b"1")
    with pytest.raises(Unsupported):
        one.copy("a", "a", into=two)
    one.copy("a", "a", into=two, stream=True)
    assert two.read("a") == b"1"


@pytest.mark.parametrize("option", ["threshold", "part_size", "page_size"])
@pytest.mark.parametrize("value", [0, -5, "x"])
def test_bad_options(option: str, value: object) -> None:
    """Sizes below one, and what is no number, are refused."""
    with pytest.raises(InvalidInput, match=option):
        Operator.from_uri("memory://", **{option: value})  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="versions"):
        Operator.from_uri("memory://?versions=maybe")


def test_parts_must_be_held_as_they_are_named() -> None:
    """A commit of parts in another order, with another tag, or missing: refused, nothing made."""
    store = MemoryStore("strict", versions=False)
    upload = store.begin("k", Metadata(path="k"))
    one, two = store.put_part(upload, 1, b"one"), store.put_part(upload, 2, b"two")
    for parts in ([two, one], [one, Part(2, "other", 3)], [two], [one, two, Part(3, "x", 1)]):
        with pytest.raises(Refused):
            store.complete(upload, parts, Condition())
    with pytest.raises(Refused):
        store.get("k")
    store.complete(upload, [one, two], Condition())
    assert store.get("k").data == b"onetwo"
    with pytest.raises(Refused, match="no upload"):
        store.complete(upload, [one, two], Condition())


def test_versions_are_removed_one_by_one() -> None:
    """A version deleted by its name leaves the others; without a name all go."""
    op = Operator.from_uri("memory://", versions=True)
    old, new = op.write("v", b"old"), op.write("v", b"new")
    op.delete("v", version=old.version)
    assert op.read("v") == b"new"
    with pytest.raises(NotFound):
        op.read("v", version=old.version)
    op.delete("v", version=new.version)
    assert not op.exists("v")
    assert list(op.list()) == []


def test_writers_and_listers_do_not_disturb_each_other() -> None:
    """Under many threads every listing is in order and holds what was there throughout."""
    op = Operator.from_uri("memory://", page_size=5)
    for number in range(0, 60, 2):
        op.write(f"{number:02}", b"")
    stop = threading.Event()

    def churn() -> None:
        while not stop.is_set():
            for number in range(1, 60, 2):
                op.write(f"{number:02}", b"")
            for number in range(1, 60, 2):
                op.delete(f"{number:02}")

    churning = [threading.Thread(target=churn) for _ in range(3)]
    for thread in churning:
        thread.start()
    try:
        for _ in range(30):
            found = [entry.path for entry in op.list()]
            assert found == sorted(set(found))
            assert {f"{number:02}" for number in range(0, 60, 2)} <= set(found)
    finally:
        stop.set()
        for thread in churning:
            thread.join()
