"""How text becomes values: the options of a format that speak of values and not of layout."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from calque.errors import InvalidInput
from calque.loader.model.file_formats import BinaryFormat, FormatOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class CastRules:
    """How dates, times, booleans, numbers and bytes are spelled."""

    date_format: str | None = None
    timestamp_format: str | None = None
    time_format: str | None = None
    time_zone: str | None = None
    true_values: tuple[str, ...] = ("true", "TRUE", "True", "1")
    false_values: tuple[str, ...] = ("false", "FALSE", "False", "0")
    decimal_point: str = "."
    thousands_separator: str | None = None
    binary_format: BinaryFormat = "utf8"
    nan_display: str | None = None

    def __post_init__(self) -> None:
        if self.time_zone is not None:
            _check_zone(self.time_zone)

    @classmethod
    @lru_cache(64)
    def of(cls, format: FormatOptions) -> CastRules:
        """The rules that a format's options state; what a format does not know has its default."""
        names = cls.__slots__
        stated = {name: getattr(format, name) for name in names if hasattr(format, name)}
        return cls(**stated)


def _check_zone(name: str) -> None:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise InvalidInput(
            f"there is no time zone {name!r}", hint="Use a name such as UTC or Europe/Paris."
        ) from error
