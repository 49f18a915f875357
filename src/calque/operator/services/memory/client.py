"""Requests to a memory store: through the layers, refusals mapped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from calque.operator import paths
from calque.operator.layers.chain import Call, Chain
from calque.operator.services.memory.config import MemoryConfig
from calque.operator.services.memory.errors import Refused, error_of
from calque.operator.services.memory.store import MemoryStore
from calque.values import Metadata

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Client:
    """What every verb needs: where objects are, and a way to ask through the layers."""

    config: MemoryConfig
    store: MemoryStore
    chain: Chain

    def key(self, path: str) -> str:
        return paths.join(self.config.root, paths.unicode_path(path))

    def location(self, path: str) -> str:
        """The URI of a path."""
        root = f"{self.config.root}/" if self.config.root else ""
        return f"memory://{self.store.name}/{root}{path}"

    def localize(self, stored: Metadata) -> Metadata:
        """What the store knows by its key, by the path below this root."""
        path = paths.relative(self.config.root, stored.path)
        return replace(stored, path=path, is_dir=path.endswith("/"))

    def send(
        self,
        verb: str,
        path: str,
        request: Callable[[], T],
        *,
        idempotent: bool = True,
        slow: bool = False,
    ) -> T:
        """The answer of one request; a refusal becomes the error it stands for."""

        def answer(_: Call) -> T:
            try:
                return request()
            except Refused as refused:
                raise error_of(refused, self.location(path)) from refused

        return self.chain.send(verb, path, answer, idempotent=idempotent, slow=slow)

    def close(self) -> None:
        """Nothing is held: a store ends with the last service that knows it."""
