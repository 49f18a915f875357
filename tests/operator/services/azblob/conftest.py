"""One Azurite for the session, a container for each test, and a proxy between."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from azure.storage.blob import BlobServiceClient, ContainerClient

from calque.operator import Operator
from calque.operator.layers import Layer, Retry
from calque.values import KIB
from tests.servers.azurite import Azurite
from tests.servers.proxy import FaultProxy

THRESHOLD, PART = 64 * KIB, 16 * KIB
SOON = (Retry(first=0.001, longest=0.01),)
"""Repeats what may be repeated, almost at once."""


@dataclass(frozen=True)
class Account:
    """An account of Azurite, a container in it, and how to open it."""

    azurite: Azurite
    name: str
    container: str

    def open(self, *, port: int | None = None, layers: tuple[Layer, ...] = SOON) -> Operator:
        """An operator by the account's key; ``port`` is that of a proxy."""
        return Operator.from_uri(
            f"az://{self.container}",
            layers=layers,
            account=self.name,
            key=self.azurite.keys[self.name],
            endpoint=self.azurite.endpoint(self.name, port),
            threshold=THRESHOLD,
            part_size=PART,
        )

    def client(self) -> ContainerClient:
        """Microsoft's own client, to look at what we made."""
        credential = {"account_name": self.name, "account_key": self.azurite.keys[self.name]}
        service = BlobServiceClient(self.azurite.endpoint(self.name), credential=credential)
        return service.get_container_client(self.container)


def fresh(azurite: Azurite, account: str) -> Account:
    container = f"c{uuid.uuid4().hex[:12]}"
    azurite.make_container(account, container)
    return Account(azurite, account, container)


@pytest.fixture
def account(azurite: Azurite) -> Account:
    """The account that tests copy within."""
    return fresh(azurite, "calquetest")


@pytest.fixture
def elsewhere(azurite: Azurite) -> Account:
    """Another account."""
    return fresh(azurite, "calqueother")


@pytest.fixture
def op(account: Account) -> Operator:
    """The container, directly."""
    return account.open()


@pytest.fixture
def proxy(azurite: Azurite) -> Iterator[FaultProxy]:
    """Faults between client and Azurite."""
    with FaultProxy(f"http://127.0.0.1:{azurite.port}") as running:
        yield running


@pytest.fixture
def shaky(account: Account, proxy: FaultProxy) -> Operator:
    """The same container through the proxy."""
    return account.open(port=int(proxy.endpoint.rpartition(":")[2]))
