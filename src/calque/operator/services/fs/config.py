"""What can be set of local files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from calque.errors import InvalidInput
from calque.operator.services.fs.root import Root
from calque.operator.services.option_values import flag
from calque.operator.uri import ServiceUri, refuse_unknown

OPTIONS = frozenset({"durable"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FsConfig:
    """``durable``: fsync files and directories before a call returns (the default)."""

    root: Root
    durable: bool = True

    @classmethod
    def parse(cls, uri: ServiceUri, options: Mapping[str, object]) -> FsConfig:
        """Read a root directory, which need not exist yet, and its options."""
        refuse_unknown("fs", options, OPTIONS)
        if uri.host not in ("", "localhost"):
            raise InvalidInput(
                f"{uri} names a host; only files of this machine can be reached",
                hint="Write three slashes for an absolute path: "
                f"{uri.scheme}:///{uri.host}{uri.path}",
            )
        root = uri.path or "/"
        if "\0" in root:
            raise InvalidInput(f"{root!r} is no directory")
        durable = flag("durable", options.get("durable", True))
        return cls(root=Root(os.path.normpath(os.path.abspath(root))), durable=durable)
