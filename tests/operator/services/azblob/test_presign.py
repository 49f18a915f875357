"""Requests for blobs that are signed for others."""

from __future__ import annotations

import pytest

from calque.errors import Unsupported
from calque.operator import Operator, PresignedRequest
from tests.operator.presigned import ODD, send
from tests.operator.services.azblob.conftest import Account


@pytest.mark.parametrize("name", ["plain", ODD])
def test_every_verb(op: Operator, name: str) -> None:
    """A stranger writes, looks, reads and deletes by what was signed for that."""
    assert send(op.presign("write", name), b"theirs")[0] == 201
    assert op.read(name) == b"theirs"
    assert send(op.presign("stat", name))[0] == 200
    assert send(op.presign("read", name)) == (200, b"theirs")
    assert send(PresignedRequest("DELETE", op.presign("read", name).url))[0] == 403
    assert send(op.presign("delete", name))[0] == 202
    assert not op.exists(name)


def test_a_signature_of_ones_own_is_not_handed_on(account: Account) -> None:
    """It may allow more than one verb of one blob: refused, with what would do."""
    place = {"account": account.name, "endpoint": account.azurite.endpoint(account.name)}
    op = Operator.from_uri(f"az://{account.container}", sas="sv=1&sig=hush", **place)  # type: ignore[arg-type]
    with pytest.raises(Unsupported, match="key"):
        op.presign("read", "x")
