"""One request to a memory store: through the layers, refusals mapped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from calque.operator.layers.chain import Call, Chain
from calque.operator.services.memory.errors import Refused, mapped
from calque.operator.services.memory.store import MemoryStore

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Requests:
    """Sends requests to a store through a chain of layers."""

    store: MemoryStore
    chain: Chain
    root: str

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
                raise mapped(refused, self.location(path)) from refused

        return self.chain.run(Call(verb, path, idempotent=idempotent, slow=slow), answer)

    def location(self, path: str) -> str:
        """The URI of a path."""
        root = f"{self.root}/" if self.root else ""
        return f"memory://{self.store.name}/{root}{path}"
