"""How a satellite is set up."""

from __future__ import annotations

from dataclasses import dataclass, field

from calque.errors import ConfigInvalid
from calque.store.metabase.model.records import Redundancy
from calque.values import MIB


@dataclass(frozen=True)
class SatelliteSettings:
    """Limits and defaults; everything here can be changed between two starts.

    The default redundancy is one piece on one node: a single folder pays nothing for
    erasure coding. Rates count calls of one project; bursts may use up a second at once.
    """

    redundancy: Redundancy = field(default_factory=lambda: Redundancy(256, 1, 1, 1, 1))
    max_segment_size: int = 64 * MIB
    max_inline_size: int = 4096
    max_message_size: int = 8 * MIB
    calls_per_second: float | None = None
    operation_lifetime_s: float = 24 * 3600.0
    zombie_after_s: float = 24 * 3600.0

    def __post_init__(self) -> None:
        self.redundancy.check()
        positive = (
            self.max_segment_size,
            self.max_inline_size,
            self.max_message_size,
            self.operation_lifetime_s,
            self.zombie_after_s,
            1 if self.calls_per_second is None else self.calls_per_second,
        )
        if any(value <= 0 for value in positive):
            raise ConfigInvalid("the limits and times of a satellite must be positive")
