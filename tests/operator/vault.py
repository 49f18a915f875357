"""A builder with a secret option, over a memory service."""

from collections.abc import Mapping

from calque.operator.layers.chain import Chain
from calque.operator.services.memory.config import MemoryConfig
from calque.operator.services.memory.service import MemoryService
from calque.operator.services.memory.store import MemoryStore
from calque.operator.uri import ServiceUri, refuse_unknown

SECRETS = frozenset({"key"})


class VaultService(MemoryService):
    """Remembers the key it was opened with."""

    key: object = None


def build(uri: ServiceUri, options: Mapping[str, object], chain: Chain) -> VaultService:
    """A service of its own, opened with a key."""
    refuse_unknown("vault", options, ["key", "size"])
    service = VaultService(MemoryConfig(), MemoryStore(uri.host, versions=False), chain)
    service.key = options.get("key")
    return service


def provide() -> dict[str, object]:
    """Credentials, found where the operator is opened."""
    return {"key": "from the provider"}
