"""The Range header of a GET, and what becomes of it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from calque.gateway.errors import S3Error

_RANGE = re.compile(r"bytes=(\d{0,19})-(\d{0,19})", re.ASCII)


@dataclass(frozen=True, slots=True)
class ByteRange:
    """From ``first`` to ``last``, both read."""

    first: int
    last: int

    @property
    def length(self) -> int:
        return self.last - self.first + 1

    def header(self, size: int) -> str:
        return f"bytes {self.first}-{self.last}/{size}"


def find_range(text: str | None, size: int) -> ByteRange | None:
    """The range within an object of this size; None for the whole of it.

    Several ranges, other units and nonsense mean the whole, as RFC 9110 has it. Past the end is
    InvalidRange.
    """
    found = _RANGE.fullmatch((text or "").replace(" ", ""))
    if found is None or found[0] == "bytes=-":
        return None
    first, last = found[1], found[2]
    if not first:
        length = min(int(last), size)
        if length == 0:
            raise not_satisfiable(size)
        return ByteRange(size - length, size - 1)
    if last and int(last) < int(first):
        return None
    if int(first) >= size:
        raise not_satisfiable(size)
    return ByteRange(int(first), min(int(last), size - 1) if last else size - 1)


def not_satisfiable(size: int) -> S3Error:
    return S3Error(
        "InvalidRange",
        "The requested range is not satisfiable",
        headers={"Content-Range": f"bytes */{size}"},
    )
