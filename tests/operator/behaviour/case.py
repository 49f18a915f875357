"""What the behaviour suite needs to know of a service."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from calque.operator import Operator


@dataclass(frozen=True)
class Case:
    """A service under test.

    ``open`` gives an operator at a root of that name, empty when the name is new. ``threshold``:
    the largest object that it copies in one request (None: there is no other way). ``part``: the
    size of a part above it.
    """

    name: str
    open: Callable[[str], Operator]
    threshold: int | None
    part: int

    @property
    def sizes(self) -> list[int]:
        """Sizes around every border of the service's paths."""
        around = [0, 1, self.part - 1, self.part, self.part + 1, 2 * self.part, 3 * self.part + 17]
        if self.threshold is not None:
            around += [self.threshold, self.threshold + 1]
        return sorted(set(around))

    @property
    def small(self) -> int:
        """A size that is copied in one request."""
        return 1000 if self.threshold is None else min(1000, self.threshold)

    @property
    def large(self) -> int:
        """A size that is copied in several parts, where the service has parts."""
        return max(self.threshold or 0, 3 * self.part) + 17

    @property
    def parted(self) -> int:
        """The smallest size that is copied in parts, where the service has parts."""
        return self.large if self.threshold is None else self.threshold + 1


def content(size: int) -> bytes:
    """Bytes in which no two parts are alike."""
    block = os.urandom(min(size, 64 * 1024))
    count = size // (8 + len(block)) + 1
    return b"".join(number.to_bytes(8, "big") + block for number in range(count))[:size]
