"""Reads that break off, and objects as files."""

import io
from collections.abc import Iterator

import pytest

from calque.errors import ConditionNotMatch, InvalidInput, IsADirectory, NotFound, Unavailable
from calque.operator import Operator, ReadOptions
from calque.operator.layers.chain import Chain
from calque.operator.services.memory.config import MemoryConfig
from calque.operator.services.memory.service import MemoryService
from calque.operator.services.memory.store import MemoryStore

DATA = bytes(number % 251 for number in range(5000))


class Leaky(MemoryService):
    """A service whose connections break after some bytes, the drawn number of times."""

    breaks = 0
    reads = 0

    def read(self, path: str, options: ReadOptions) -> Iterator[bytes]:
        self.reads += 1
        data = b"".join(super().read(path, options))
        if self.breaks:
            self.breaks -= 1
            yield data[:700]
            raise Unavailable("connection lost")
        yield data


@pytest.fixture
def leaky() -> Leaky:
    service = Leaky(MemoryConfig(), MemoryStore("leaky", versions=False), Chain())
    Operator(service).write("f", DATA)
    return service


def test_a_pinned_stream_goes_on_where_it_broke(leaky: Leaky) -> None:
    """Every byte once, in order, whatever the connection does."""
    leaky.breaks = 3
    op = Operator(leaky)
    assert b"".join(op.read_stream("f", if_match=op.stat("f").pin)) == DATA
    assert leaky.reads == 4


def test_an_unpinned_stream_does_not_guess(leaky: Leaky) -> None:
    """The rest could be another object's: the error is raised."""
    leaky.breaks = 1
    with pytest.raises(Unavailable):
        b"".join(Operator(leaky).read_stream("f"))


def test_an_unpinned_read_begins_again(leaky: Leaky) -> None:
    """Nothing was given away yet, so the whole may be read anew."""
    leaky.breaks = 2
    assert Operator(leaky).read("f", offset=10, length=2000) == DATA[10:2010]


def test_a_connection_that_always_breaks_is_given_up(leaky: Leaky) -> None:
    """Within a bound."""
    leaky.breaks = 10_000
    with pytest.raises(Unavailable):
        Operator(leaky).read("f")
    assert leaky.reads <= 6


def test_a_pinned_stream_that_changes_midway(leaky: Leaky) -> None:
    """The next part of a replaced object is never joined to the first."""
    leaky.breaks = 1
    op = Operator(leaky)
    stream = op.read_stream("f", if_match=op.stat("f").pin)
    next(stream)
    op.write("f", b"other")
    with pytest.raises(ConditionNotMatch):
        b"".join(stream)


def test_an_object_is_a_seekable_file(leaky: Leaky) -> None:
    """Reads, seeks and tells like a file of those bytes, over broken connections too."""
    leaky.breaks = 2
    model = io.BytesIO(DATA)
    with Operator(leaky).open("f") as file:
        for offset, whence, length in [
            (0, 0, 10),
            (100, 0, 2000),
            (-50, 2, 100),
            (-30, 1, 5),
            (9000, 0, 5),
            (0, 0, -1),
        ]:
            assert file.seek(offset, whence) == model.seek(offset, whence)
            assert file.read(length) == model.read(length)
            assert file.tell() == model.tell()
        with pytest.raises((InvalidInput, OSError)):
            file.seek(-1)


def test_a_file_is_pinned_when_it_is_opened(leaky: Leaky) -> None:
    """Other bytes under the same name are an error, not a mixture."""
    op = Operator(leaky)
    with op.open("f") as file:
        op.write("f", DATA + b"more")
        with pytest.raises(ConditionNotMatch):
            file.read()


def test_what_cannot_be_opened(leaky: Leaky) -> None:
    """A directory, and what is not there."""
    with pytest.raises(IsADirectory):
        Operator(leaky).open("f/")
    with pytest.raises(NotFound):
        Operator(leaky).open("missing")
