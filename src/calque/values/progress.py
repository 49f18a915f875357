"""How far a piece of work has come."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """Bytes done, and bytes in all where that is known. ``copied`` never goes back."""

    copied: int
    total: int | None

    @property
    def fraction(self) -> float | None:
        """Between 0 and 1; None while the total is unknown."""
        if self.total is None:
            return None
        return 1.0 if self.total == 0 else self.copied / self.total
