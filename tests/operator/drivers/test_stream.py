"""The stream driver's threads."""

import gc
import threading
import warnings
from collections.abc import Iterable, Iterator

import pytest

from calque.errors import IntegrityError, Unavailable
from calque.operator import Operator, WriteOptions
from calque.values import MIB, Metadata
from tests.operator.recorder import Hook, failing


@pytest.fixture
def pair() -> Iterator[tuple[Operator, Operator]]:
    """Two services that cannot copy between themselves; the first holds several chunks."""
    with Operator.from_uri("memory://") as one, Operator.from_uri("memory://") as two:
        one.write("from", bytes(5 * MIB))
        yield one, two


def streams() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "calque-stream"]


def test_a_forgotten_stream_ends_its_thread(pair: tuple[Operator, Operator]) -> None:
    """A copier dropped midway warns at once, and its thread does not wait for ever."""
    one, two = pair
    copier = one.copier("from", "to", into=two, stream=True)
    next(copier)
    running = streams()
    assert running
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del copier
        gc.collect()
    assert any(each.category is ResourceWarning for each in caught)
    for thread in running:
        thread.join(30)
        assert not thread.is_alive()
    assert not two.exists("to")


def test_a_write_that_fails_is_raised_once_and_again(pair: tuple[Operator, Operator]) -> None:
    """The target's error is the copy's error."""
    one, two = pair
    broken = two.layer(Hook("write", failing(Unavailable("target is down"))))
    copier = one.copier("from", "to", into=broken, stream=True)
    for _ in range(2):
        with pytest.raises(Unavailable, match="target is down"):
            list(copier)
    copier.abort()
    assert not two.exists("to")
    assert streams() == []


def test_a_read_that_keeps_failing_is_given_up(pair: tuple[Operator, Operator]) -> None:
    """Reopened within a bound, then its error is raised."""
    one, two = pair
    broken = one.layer(Hook("read", failing(Unavailable("source is down"))))
    with pytest.raises(Unavailable, match="source is down"):
        broken.copy("from", "to", into=two, stream=True)
    assert not two.exists("to")


def test_a_slow_reader_of_steps_holds_the_stream_back(pair: tuple[Operator, Operator]) -> None:
    """Chunks are not read far ahead of the steps: memory stays flat."""
    one, two = pair
    drawn = []

    class Counting:
        """The first service, counting the chunks that are drawn from it."""

        def __getattr__(self, name: str) -> object:
            return getattr(one.service, name)

        def with_chain(self, chain: object) -> object:
            return self

        def read(self, path: str, options: object) -> Iterator[bytes]:
            for chunk in one.service.read(path, options):  # type: ignore[arg-type]
                drawn.append(len(chunk))
                yield chunk

    copier = Operator(Counting()).copier("from", "to", into=two, stream=True)  # type: ignore[arg-type]
    assert next(copier) == MIB
    assert len(drawn) <= 4
    assert sum(copier) == 4 * MIB
    assert len(drawn) == 5


def test_a_writer_that_reads_nothing_is_found_out(pair: tuple[Operator, Operator]) -> None:
    """A service that commits without the bytes cannot pass for a copy."""
    one, two = pair

    class Liar:
        """The second service, whose writes take nothing."""

        def __getattr__(self, name: str) -> object:
            return getattr(two.service, name)

        def with_chain(self, chain: object) -> object:
            return self

        def write(self, path: str, chunks: Iterable[bytes], options: WriteOptions) -> Metadata:
            return two.service.write(path, (), options)

    with pytest.raises(IntegrityError, match="0 of 5242880"):
        one.copy("from", "to", into=Operator(Liar()), stream=True)  # type: ignore[arg-type]
