"""What a file system keeps of a file besides its bytes, and how an object carries it along."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

USER_KEY = "calquefile"
"""The one name in an object's user metadata: letters alone, as every service takes them."""


LINK_TYPE = "inode/symlink"
"""The content type of an object that stands for a link: its bytes are the link's text."""


@dataclass(frozen=True, slots=True)
class FileAttributes:
    """When a file was modified (in nanoseconds), its mode, its owners; None is not known."""

    mtime: int | None = None
    mode: int | None = None
    uid: int | None = None
    gid: int | None = None

    def to_text(self) -> str:
        """``mtime=1700000000123456789 mode=644``, with what is known."""
        told = {each.name: getattr(self, each.name) for each in fields(self)}
        return " ".join(
            f"{name}={value:o}" if name == "mode" else f"{name}={value}"
            for name, value in told.items()
            if value is not None
        )

    @classmethod
    def of_user(cls, user: Mapping[str, str]) -> FileAttributes:
        """What an object's user metadata tells; what cannot be read counts as not known."""
        found: dict[str, int] = {}
        for part in user.get(USER_KEY, "").split():
            name, _, value = part.partition("=")
            try:
                number = int(value, 8 if name == "mode" else 10)
            except ValueError:
                continue
            if name in cls.__slots__ and 0 <= number < 1 << 63:
                found[name] = number
        mode = found.get("mode")
        return cls(**{**found, **({} if mode is None else {"mode": mode & 0o7777})})
