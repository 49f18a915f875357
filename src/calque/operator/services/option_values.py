"""Values of a service's options, read from keywords (of any kind) and from queries (strings)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from calque.errors import ConfigInvalid, InvalidInput

_USERINFO = re.compile(r"[^/\s'\"]*@")

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


def whole_number(name: str, value: object) -> int:
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


def check_endpoint(scheme: str, endpoint: str) -> None:
    """Refuse an address that cannot be a server's. It is not told whole: it may hold a password."""
    try:
        parts = urlsplit(endpoint)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
        usable = usable and parts.port != 0
    except ValueError:
        usable = False
    if "@" in endpoint:
        raise ConfigInvalid(
            f"{scheme}: an endpoint takes no user and no password in its address",
            hint="Give credentials by the environment or as options; an address ends up in logs.",
        )
    if not usable:
        raise ConfigInvalid(
            f"{scheme}: the endpoint {endpoint!r} is no http(s)://host:port address"
        )


def without_userinfo(words: str) -> str:
    """A foreign error's words, without what stands before the host of an address in them."""
    return _USERINFO.sub("****@", words)


def refuse_same_but_case(service: str, names: Iterable[str]) -> None:
    """Refuse names of metadata of which a service, that takes no notice of case, keeps but one."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise InvalidInput(
                f"{service} cannot keep metadata named both {other!r} and {name!r}: "
                "its names differ by more than case"
            )
