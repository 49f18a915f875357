"""What can be set of local files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from calque.errors import InvalidInput
from calque.operator.services.fs.root import Root
from calque.operator.services.option_values import flag


@dataclass(frozen=True, slots=True, kw_only=True)
class FsConfig:
    """``durable``: fsync files and directories before a call returns (the default)."""

    root: Root
    durable: bool = True

    @classmethod
    def make(cls, root: str, options: Mapping[str, object]) -> FsConfig:
        """The configuration of a root directory, which need not exist yet."""
        if "\0" in root or not root:
            raise InvalidInput(f"{root!r} is no directory")
        durable = flag("durable", options.get("durable", True))
        return cls(root=Root(os.path.normpath(os.path.abspath(root))), durable=durable)
