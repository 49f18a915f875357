"""What a copy compares when it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from calque.errors import Aborted, IntegrityError
from calque.operator import CopyDriver, CopyOptions, Operator, Service
from calque.operator.layers.chain import Chain
from calque.operator.services.memory.config import MemoryConfig
from calque.operator.services.memory.service import MemoryService
from calque.operator.services.memory.store import MemoryStore
from calque.values import Checksum, Metadata


class Wrong(MemoryService):
    """A service whose copies tell another size, checksum or count than is true."""

    size: int | None = None
    checksum: Checksum | None = None
    steps: int = 0

    def with_chain(self, chain: Chain) -> Wrong:
        made = Wrong(self._client.config, self._client.store, chain)
        made.size, made.checksum, made.steps = self.size, self.checksum, self.steps
        return made

    def copy(
        self, source: Metadata, target: str, options: CopyOptions, *, into: Service
    ) -> CopyDriver:
        return Distorted(super().copy(source, target, options, into=into), self)


class Distorted:
    """A driver seen through the service's distortion."""

    def __init__(self, driver: CopyDriver, wrong: Wrong) -> None:
        self._driver = driver
        self._wrong = wrong

    @property
    def total(self) -> int:
        return self._driver.total

    def step(self) -> int | None:
        copied = self._driver.step()
        return None if copied is None else copied + self._wrong.steps

    def abort(self) -> None:
        self._driver.abort()

    def pause(self) -> None:
        self._driver.pause()

    def state(self) -> Mapping[str, Any]:
        return self._driver.state()

    def result(self) -> Metadata:
        made = self._driver.result()
        if self._wrong.size is not None:
            made = replace(made, size=self._wrong.size)
        if self._wrong.checksum is not None:
            made = replace(made, checksum=self._wrong.checksum)
        return made


@pytest.fixture
def wrong() -> Wrong:
    service = Wrong(MemoryConfig(), MemoryStore("wrong", versions=False), Chain())
    Operator(service).write("from", b"12345")
    return service


def test_a_target_of_another_size(wrong: Wrong) -> None:
    """IntegrityError, again and again; not asked for, it passes."""
    wrong.size = 4
    copier = Operator(wrong).copier("from", "to")
    for _ in range(2):
        with pytest.raises(IntegrityError, match="4 bytes out of 5"):
            list(copier)
    copier.abort()
    with pytest.raises(IntegrityError):
        Operator(wrong).copy("from", "to", verify="size")
    Operator(wrong).copy("from", "to", verify="none")


def test_a_target_of_another_checksum(wrong: Wrong) -> None:
    """IntegrityError where both sides have one of the same kind; other kinds tell nothing."""
    wrong.checksum = Checksum("crc32", "00000000")
    with pytest.raises(IntegrityError, match="checksums disagree"):
        Operator(wrong).copy("from", "to")
    Operator(wrong).copy("from", "to", verify="size")
    wrong.checksum = Checksum("crc32c", "00000000")
    Operator(wrong).copy("from", "to")


@pytest.mark.parametrize("off", [-6, -1, 1])
def test_steps_that_do_not_sum_up(wrong: Wrong, off: int) -> None:
    """A driver that counts wrong is found out: too much at once, too little at the end."""
    wrong.steps = off
    copier = Operator(wrong).copier("from", "to")
    with pytest.raises(IntegrityError):
        list(copier)
    assert 0 <= copier.progress.copied <= 5
    copier.abort()


def test_a_copier_shows_what_it_is(wrong: Wrong) -> None:
    """Its repr tells source, target, state and bytes."""
    copier = Operator(wrong).copier("from", "to")
    assert repr(copier) == "<Copier memory://wrong/from to memory://wrong/to: ready, 0 of 5 bytes>"
    copier.abort()
    assert "aborted" in repr(copier)
    with pytest.raises(Aborted, match="memory://wrong/to"):
        next(copier)
    assert copier.source.size == 5
