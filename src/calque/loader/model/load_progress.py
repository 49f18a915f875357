"""How far a load has come, as whoever shows it is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How far a load has come, for a bar."""

    files: int = 0
    files_total: int = 0
    rows: int = 0
    bytes: int = 0
    bytes_total: int = 0
    phase: str = "loading"
    """What is being done, in words: ``listing and comparing``, ``starting Spark``, ``loading`` …"""


OnProgress = Callable[[LoadProgress], None]
