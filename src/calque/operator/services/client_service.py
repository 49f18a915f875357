"""A service whose requests a client sends: what is the same for all of them.

The client knows the root and the layers; ``service.py`` of each package adds what it can do and
hands every verb on to the file of that name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, Protocol, TypeVar

from calque.operator.layers.chain import Chain
from calque.operator.options import CopyOptions
from calque.operator.service import CopyDriver, Service
from calque.values import Metadata


class RootedClient(Protocol):
    """Sends requests about paths below one root through the layers."""

    @property
    def chain(self) -> Chain: ...

    def location(self, path: str) -> str: ...

    def close(self) -> None: ...


C = TypeVar("C", bound=RootedClient)


class ClientService(ABC, Generic[C]):
    """The verbs that do not differ: chain, location, copy and resume, close."""

    def __init__(self, client: C) -> None:
        self._client = client

    @property
    def chain(self) -> Chain:
        return self._client.chain

    def location(self, path: str) -> str:
        return self._client.location(path)

    def copy(
        self, source: Metadata, target: str, options: CopyOptions, *, into: Service
    ) -> CopyDriver:
        return self._driver(source, target, options, into)

    def resume(
        self,
        source: Metadata,
        target: str,
        options: CopyOptions,
        state: Mapping[str, Any],
        *,
        into: Service,
    ) -> CopyDriver:
        return self._driver(source, target, options, into, state)

    @abstractmethod
    def _driver(
        self,
        source: Metadata,
        target: str,
        options: CopyOptions,
        into: Service,
        state: Mapping[str, Any] | None = None,
    ) -> CopyDriver:
        """The driver of a new copy or, with its state, of an earlier one.

        Raises Unsupported where ``into`` is not of the same server.
        """

    def close(self) -> None:
        self._client.close()
