"""Checksums of bytes as they arrive."""

from __future__ import annotations

import pytest

from calque.operator.http.digest import Digest
from calque.values import Checksum
from tests.operator.behaviour.case import content
from tests.operator.http.checksums import TRUE, flip_a_bit

DATA = content(700_000)
KNOWN = {"crc32": "y/Q5Jg==", "crc32c": "4waSgw==", "crc64nvme": "rosUhgp5mIg="}
"""Of the nine digits, as the catalogues of CRCs have them."""


@pytest.mark.parametrize("kind", TRUE)
def test_a_digest_of_pieces_is_that_of_the_whole(kind: str) -> None:
    """However the bytes are cut; one other bit breaks it."""
    promised = Checksum(kind, TRUE[kind](DATA))
    for size in (1 + len(DATA), 65536, 4097):
        digest = Digest([promised])
        for at in range(0, len(DATA), size):
            digest.update(DATA[at : at + size])
        assert digest.find_broken() is None
    wrong = Digest([promised])
    wrong.update(flip_a_bit(DATA))
    assert wrong.find_broken() is not None
    if kind in KNOWN:
        assert TRUE[kind](b"123456789") == KNOWN[kind]


def test_a_digest_of_a_kind_that_nobody_knows_promises_nothing() -> None:
    """Servers may bring new ones."""
    assert Digest([Checksum("xxh9000", "AAAA")]).find_broken() is None
