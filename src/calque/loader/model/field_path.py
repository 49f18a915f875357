"""``$1:items[0].sku``: a value inside of a column, found by names and numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PLAIN = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)
_NUMBERED = re.compile(r"\$\d+\Z")


@dataclass(frozen=True, slots=True)
class FieldPath:
    """The column it begins at (``$1``, or a name), and the steps into it.

    As text it is spelled as a statement spells it. Expressions name it by that text, as they name a
    column; what it stands for is known once the files' columns are.
    """

    column: str
    steps: tuple[str | int, ...]

    def __str__(self) -> str:
        text = self.column if _NUMBERED.match(self.column) else _name(self.column)
        joint = ":"
        for step in self.steps:
            if isinstance(step, int):
                text += f"[{step}]"
            else:
                text, joint = f"{text}{joint}{_name(step)}", "."
        return text


def _name(text: str) -> str:
    if _PLAIN.match(text):
        return text
    escaped = text.replace('"', '""')
    return f'"{escaped}"'
