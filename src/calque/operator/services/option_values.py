"""Values of a service's options, read from keywords (of any kind) and from queries (strings)."""

from __future__ import annotations

from calque.errors import ConfigInvalid

_WORDS = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}


def flag(name: str, value: object) -> bool:
    """True or false, or a word for it."""
    found = _WORDS.get(str(value).lower())
    if found is None:
        raise ConfigInvalid(f"the option {name!r} must be true or false, not {value!r}")
    return found


def whole(name: str, value: object) -> int:
    """A whole number."""
    try:
        return int(str(value))
    except ValueError as error:
        raise ConfigInvalid(f"the option {name!r} must be a whole number, not {value!r}") from error


def number(name: str, value: object) -> float:
    """A number, of seconds for example."""
    try:
        return float(str(value))
    except ValueError as error:
        raise ConfigInvalid(f"the option {name!r} must be a number, not {value!r}") from error


def text(name: str, value: object) -> str | None:
    """Text that is not empty; None stays None. The value may be a secret and is not told."""
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise ConfigInvalid(f"the option {name!r} must be text that is not empty")
    return value
