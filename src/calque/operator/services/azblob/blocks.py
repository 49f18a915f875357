"""Block ids: our mark, the write's id with the time it began, and the block's number.

All ids of a blob must be equally long; ours always are. The service lists them, so it can say what
of a copy is staged, and what a killed one has left and since when.
"""

from __future__ import annotations

import base64
import re
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from calque.values import MIB, PartLimits

LIMITS = PartLimits(smallest=1, largest=4000 * MIB, most=50_000)
_PLAIN = re.compile(rb"calque:([0-9a-f]{20}):(\d{6})")


@dataclass(frozen=True, slots=True)
class Block:
    """A block of ours: which write it belongs to, and its number from 1."""

    write: str
    number: int

    @property
    def id(self) -> str:
        """As the service knows it."""
        return base64.b64encode(f"calque:{self.write}:{self.number:06}".encode()).decode()

    @classmethod
    def read(cls, id: str) -> Block | None:
        """The block behind an id; None where it is not one of ours."""
        try:
            found = _PLAIN.fullmatch(base64.b64decode(id, validate=True))
        except ValueError:  # not base64, or not even ASCII
            return None
        return cls(found[1].decode(), int(found[2])) if found else None


def new_write() -> str:
    """The id of a new write: the second it begins, then chance."""
    # Eight digits hold the seconds until the year 2106; the length of ids may never change.
    return f"{int(time.time()):08x}{secrets.token_hex(6)}"


def is_write(text: object) -> bool:
    """Whether a text is an id that :func:`new_write` could have made."""
    return isinstance(text, str) and re.fullmatch(r"[0-9a-f]{20}", text) is not None


def start_of(write: str) -> datetime:
    """When a write began."""
    return datetime.fromtimestamp(int(write[:8], 16), UTC)
