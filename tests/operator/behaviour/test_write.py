"""Write, on every service."""

import io
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from calque.errors import ConditionNotMatch, InvalidInput, IsADirectory, NotFound, Unsupported
from calque.operator import Operator
from tests.operator.behaviour.case import Case, content


def test_bytes_chunks_and_files_are_written_alike(op: Operator, case: Case) -> None:
    """Bytes, a bytearray, an iterable of chunks and a binary file make the same object."""
    data = content(case.large)
    pieces = [data[at : at + 700_001] for at in range(0, len(data), 700_001)]
    for name, given in {
        "bytes": data,
        "bytearray": bytearray(data),
        "chunks": iter(pieces),
        "file": io.BytesIO(data),
    }.items():
        made = op.write(name, given)
        assert made.size == len(data)
        assert op.read(name) == data


def test_write_returns_what_stat_finds(op: Operator) -> None:
    """The metadata of a write names the object that is there now."""
    made = op.write("m", b"abc")
    found = op.stat("m")
    assert (made.path, made.size, made.pin) == ("m", 3, found.pin)


def test_an_overwrite_replaces(op: Operator) -> None:
    """The last write stands, also when it is shorter or empty."""
    op.write("o", b"a long one")
    op.write("o", b"short")
    assert op.read("o") == b"short"
    op.write("o", b"")
    assert op.read("o") == b""


@pytest.mark.parametrize("path", ["", "dir/"])
def test_a_directory_cannot_be_written(op: Operator, path: str) -> None:
    """IsADirectory, and nothing appears."""
    with pytest.raises(IsADirectory):
        op.write(path, b"x")
    assert list(op.list()) == []


def test_text_and_numbers_are_refused(op: Operator) -> None:
    """Only bytes are written; nothing appears otherwise."""
    with pytest.raises(InvalidInput):
        op.write("t", "text")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        op.write("t", 5)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        op.write("t", [b"ok", "no"])  # type: ignore[list-item]
    assert not op.exists("t")


def test_chunks_that_fail_leave_the_old_object(op: Operator, case: Case) -> None:
    """A producer that breaks off changes nothing and leaves nothing behind."""
    op.write("w", b"old")

    def break_off() -> Iterator[bytes]:
        yield content(case.large)
        raise RuntimeError("producer died")

    with pytest.raises(RuntimeError, match="producer died"):
        op.write("w", break_off())
    assert op.read("w") == b"old"
    assert [entry.path for entry in op.list()] == ["w"]
    assert list(op.leftovers()) == []


def test_if_not_exists(op: Operator) -> None:
    """Creates a new object and refuses an old one; Unsupported where it cannot be atomic."""
    if not op.capability.write_with_if_not_exists:
        with pytest.raises(Unsupported):
            op.write("n", b"x", if_not_exists=True)
        assert not op.exists("n")
        return
    op.write("n", b"first", if_not_exists=True)
    with pytest.raises(ConditionNotMatch):
        op.write("n", b"second", if_not_exists=True)
    assert op.read("n") == b"first"


def test_if_not_exists_above_the_size_of_a_part(
    op: Operator, case: Case, need: Callable[..., None]
) -> None:
    """The condition holds for large writes too, and a refused one leaves nothing behind."""
    need("write_with_if_not_exists")
    data = content(case.large)
    op.write("n", data, if_not_exists=True)
    with pytest.raises(ConditionNotMatch):
        op.write("n", content(case.large), if_not_exists=True)
    assert op.read("n") == data
    assert list(op.leftovers()) == []


def test_if_match(op: Operator, need: Callable[..., None]) -> None:
    """Replaces exactly the object that was seen."""
    need("write_with_if_match")
    op.write("c", b"one")
    pin = op.stat("c").pin
    op.write("c", b"two", if_match=pin)
    with pytest.raises(ConditionNotMatch):
        op.write("c", b"three", if_match=pin)
    assert op.read("c") == b"two"
    with pytest.raises((ConditionNotMatch, NotFound)):
        op.write("absent", b"x", if_match=pin)


def test_one_of_many_creators_wins(op: Operator, need: Callable[..., None]) -> None:
    """Writers that race to create one object: exactly one succeeds, and its bytes stand."""
    need("write_with_if_not_exists")

    def create(number: int) -> int | None:
        try:
            op.write("race", b"%d" % number, if_not_exists=True)
        except ConditionNotMatch:
            return None
        return number

    with ThreadPoolExecutor(8) as pool:
        winners = [each for each in pool.map(create, range(8)) if each is not None]
    assert len(winners) == 1
    assert op.read("race") == b"%d" % winners[0]


def test_conditions_exclude_each_other(op: Operator) -> None:
    """if_not_exists together with if_match is bad input, and so is an unknown option."""
    with pytest.raises(InvalidInput):
        op.write("x", b"x", if_not_exists=True, if_match="e")
    with pytest.raises(InvalidInput, match="if_nothing"):
        op.write("x", b"x", if_nothing=True)  # type: ignore[call-arg]
    assert not op.exists("x")
