"""The configuration of a memory service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from calque.errors import InvalidInput
from calque.operator.services.option_values import flag, whole_number
from calque.operator.uri import ServiceUri, refuse_unknown
from calque.values import MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryConfig:
    """``memory://name/root``: operators of one name share objects while any of them lives.

    Without a name the objects are this operator's own.
    """

    name: str = ""
    root: str = ""
    versions: bool = False
    """Keep every version of an object; read and copy them by ``version``."""
    threshold: int = 8 * MIB
    """Objects larger than this are copied in parts."""
    part_size: int = 8 * MIB
    """The size of a part where ``chunk`` does not say otherwise."""
    page_size: int = 1000
    """Entries that one list request returns."""

    def __post_init__(self) -> None:
        for name in ("threshold", "part_size", "page_size"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"memory: {name} must be at least 1")

    @classmethod
    def parse(cls, uri: ServiceUri, options: Mapping[str, object]) -> MemoryConfig:
        """Read the URI and its options; values of a query are strings."""
        known = [each.name for each in fields(cls) if each.name not in ("name", "root")]
        refuse_unknown("memory", options, known)
        values = {
            name: flag(name, value) if name == "versions" else whole_number(name, value)
            for name, value in options.items()
        }
        return cls(name=uri.host, root=uri.path.strip("/"), **values)  # type: ignore[arg-type]
