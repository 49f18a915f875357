"""Local files from a URI or a plain path."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from calque.operator.layers.chain import Chain
from calque.operator.services.fs.config import FsConfig
from calque.operator.services.fs.service import FsService
from calque.operator.uri import ServiceUri

SECRETS: frozenset[str] = frozenset()
_SCHEME = re.compile("(fs|file)://", re.IGNORECASE)


def build(uri: ServiceUri, options: Mapping[str, object], chain: Chain) -> FsService:
    """The service of ``fs:///absolute/path``, ``file:///absolute/path`` or a plain path."""
    return FsService(FsConfig.parse(uri, options), chain)


def split(uri: str) -> tuple[str, str]:
    """The operator of the whole file system, and the absolute path in it without its slash.

    So that a copy between any two local files stays within one service.
    """
    path = uri
    if scheme := _SCHEME.match(uri):
        path = uri[scheme.end() :]
        if not path.startswith("/"):
            build(ServiceUri.parse(uri), {}, Chain())  # says what is wrong with a host
            path = "/" + path.partition("/")[2]
    slash = "/" if path.endswith(("/", "/.", "/..")) or path in (".", "..") else ""
    return "file:///", (os.path.abspath(path).lstrip("/") + slash).lstrip("/")
