"""Numbers of bytes as people read them."""

from __future__ import annotations

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size_text(count: int | float) -> str:
    """``42 B``, ``1.5 MiB``: the same in every command, report and notebook."""
    value = float(count)
    unit = 0
    # What would be rounded to 1024.0 of a unit is 1.0 of the next.
    while abs(value) >= (1024 if unit == 0 else 1023.95) and unit < len(_UNITS) - 1:
        value /= 1024
        unit += 1
    return f"{value:.0f} B" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"
