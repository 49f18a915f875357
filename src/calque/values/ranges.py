"""Byte ranges, and how a large object is cut into parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


@dataclass(frozen=True, slots=True)
class ByteRange:
    """``length`` bytes from ``offset``; ``length`` None means to the end."""

    offset: int = 0
    length: int | None = None

    def __post_init__(self) -> None:
        if self.offset < 0 or (self.length is not None and self.length < 0):
            raise ValueError(f"a byte range cannot be negative: {self}")

    @property
    def last(self) -> int:
        """The last byte's position, for headers that count inclusively."""
        if not self.length:
            raise ValueError("only a range with a positive length has a last byte")
        return self.offset + self.length - 1


@dataclass(frozen=True, slots=True)
class PartLimits:
    """What a service allows of parts. The last part may be smaller than ``smallest``."""

    smallest: int
    largest: int
    most: int


@dataclass(frozen=True, slots=True)
class PartPlan:
    """An object of ``size`` bytes cut into parts of ``part_size``, numbered from 1."""

    size: int
    part_size: int

    @classmethod
    def make(cls, size: int, wanted: int, limits: PartLimits) -> PartPlan:
        """Parts of the wanted size, grown or shrunk until they fit the limits.

        Raises ValueError when no plan fits (the object is larger than the service can hold).
        """
        if size <= 0:
            raise ValueError("only an object with bytes can be cut into parts")
        fewest_bytes = -(-size // limits.most)
        part = max(wanted, limits.smallest, fewest_bytes)
        part = min(part, limits.largest)
        if part * limits.most < size:
            raise ValueError(
                f"{size} bytes do not fit into {limits.most} parts of {limits.largest}"
            )
        return cls(size, part)

    @property
    def count(self) -> int:
        return -(-self.size // self.part_size)

    def range_of(self, number: int) -> ByteRange:
        """The bytes of part ``number`` (from 1)."""
        if not 1 <= number <= self.count:
            raise ValueError(f"there is no part {number} among {self.count}")
        offset = (number - 1) * self.part_size
        return ByteRange(offset, min(self.part_size, self.size - offset))

    def __iter__(self) -> Iterator[tuple[int, ByteRange]]:
        for number in range(1, self.count + 1):
            yield number, self.range_of(number)
