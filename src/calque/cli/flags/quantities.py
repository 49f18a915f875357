"""Sizes and durations as people type them."""

from __future__ import annotations

import re
from datetime import timedelta

from calque.errors import ConfigInvalid

_QUANTITY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")
_SIZES = {"": 1, "b": 1} | {
    name: 1024**power
    for power, letter in enumerate("kmgt", start=1)
    for name in (letter, f"{letter}b", f"{letter}ib")
}
_DURATIONS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def parse_size(text: str) -> int:
    """Bytes of ``8MiB``, ``64M``, ``1.5g`` or ``4096``; units are powers of 1024."""
    number, unit = _split(text, "size", "8MiB")
    if unit.lower() not in _SIZES:
        raise ConfigInvalid(f"{text!r} is no size", hint="For example 8MiB, 64M or 1G.")
    return int(number * _SIZES[unit.lower()])


def parse_duration(text: str) -> timedelta:
    """The time of ``30s``, ``15m``, ``12h``, ``1d``, ``2w``; a bare number is in seconds."""
    number, unit = _split(text, "duration", "1d")
    if (unit or "s").lower() not in _DURATIONS:
        raise ConfigInvalid(f"{text!r} is no duration", hint="For example 90s, 15m, 12h or 1d.")
    return timedelta(seconds=number * _DURATIONS[(unit or "s").lower()])


def parse_rate(text: str) -> float:
    """Requests a second of ``200/s``, ``200`` or ``600/m``."""
    number, _, per = text.partition("/")
    seconds = {"": 1, "s": 1, "m": 60, "h": 3600}.get(per.strip().lower())
    try:
        if seconds is not None and float(number) > 0:
            return float(number) / seconds
    except ValueError:
        pass
    raise ConfigInvalid(f"{text!r} is no rate", hint="For example 200/s or 600/m.")


def _split(text: str, what: str, example: str) -> tuple[float, str]:
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ConfigInvalid(f"{text!r} is no {what}", hint=f"For example {example}.")
    return float(match[1]), match[2]
