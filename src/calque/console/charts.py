"""Small charts, drawn by the server as SVG: no script, no library, and a text for each bar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

WIDTH, HEIGHT = 600.0, 90.0
_GAP = 0.25
"""Of the width of a bar."""


class Bar(NamedTuple):
    """One bar: where it stands, and what it says."""

    x: float
    y: float
    width: float
    height: float
    label: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars over time. ``points``: what each is called, its value, and its value as text."""

    title: str
    points: Sequence[tuple[str, float, str]]
    kind: str = "good"
    """``good`` or ``bad``: the colour."""

    @property
    def largest(self) -> float:
        return max((value for _, value, _ in self.points), default=0)

    @property
    def most(self) -> str:
        """What the highest bar says: the scale of all."""
        if not self.largest:
            return ""
        name, _, text = max(self.points, key=lambda point: point[1])
        return f"{text} on {name}"

    @property
    def summary(self) -> str:
        """What one is told who cannot see it."""
        if not self.points:
            return f"{self.title}: nothing yet"
        first, last = self.points[0], self.points[-1]
        most = f", at most {self.most}" if self.most else ""
        return f"{self.title}, from {first[0]} ({first[2]}) to {last[0]} ({last[2]}){most}"

    def bars(self) -> list[Bar]:
        """As they are drawn in a box of ``WIDTH`` by ``HEIGHT``; a value above zero is seen."""
        if not self.points:
            return []
        step = WIDTH / len(self.points)
        drawn = []
        for index, (name, value, text) in enumerate(self.points):
            share = value / self.largest if self.largest else 0
            height = max(share * HEIGHT, 1.5 if value else 0)
            x = round(index * step + step * _GAP / 2, 2)
            drawn.append(
                Bar(
                    x,
                    round(HEIGHT - height, 2),
                    round(step * (1 - _GAP), 2),
                    round(height, 2),
                    f"{name}: {text}",
                )
            )
        return drawn
