"""What the registry calls to open ``memory://``."""

from __future__ import annotations

from collections.abc import Mapping

from calque.operator.layers.chain import Chain
from calque.operator.services.memory.config import MemoryConfig
from calque.operator.services.memory.service import MemoryService
from calque.operator.services.memory.store import STORES
from calque.operator.uri import ServiceUri

SECRETS: frozenset[str] = frozenset()


def build(uri: ServiceUri, options: Mapping[str, object], chain: Chain) -> MemoryService:
    """A memory service; operators of one name share its objects."""
    config = MemoryConfig.parse(uri, options)
    store = STORES.open(config.name, versions=config.versions)
    return MemoryService(config, store, chain)


def portable(uri: str) -> bool:
    """Whether another operator can find the same objects: only by a name."""
    return bool(ServiceUri.parse(uri).host)
