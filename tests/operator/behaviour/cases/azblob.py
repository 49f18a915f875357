"""Azure Blob, over Azurite, with small blocks."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from calque.errors import Unavailable
from calque.operator import Operator
from tests.operator.behaviour.case import Case
from tests.servers.shared import shared_azurite

THRESHOLD, PART = 256 * 1024, 64 * 1024


@contextmanager
def open_case() -> Iterator[Case]:
    """The shared Azurite, a container in it."""
    try:
        azurite = shared_azurite()
    except Unavailable as error:
        pytest.skip(f"Azurite cannot be had: {error}")
    azurite.make_container("calquetest", "behaviour")

    def open_root(root: str) -> Operator:
        return Operator.from_uri(
            f"az://behaviour/{root}",
            account="calquetest",
            key=azurite.keys["calquetest"],
            endpoint=azurite.endpoint("calquetest"),
            threshold=THRESHOLD,
            part_size=PART,
        )

    yield Case("azblob", open_root, THRESHOLD, PART)
