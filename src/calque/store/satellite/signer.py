"""Tokens that a satellite signs, hands out and later believes again.

A token is a serialized message, a 16-byte HMAC over its kind and its bytes in front. A
token of one kind is never taken for another.
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from calque.errors import InvalidInput

MAC_SIZE = 16

Token = TypeVar("Token", bound=Message)


class Signer:
    """Signs and checks with one secret, which never leaves the satellite."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def __repr__(self) -> str:
        return "Signer(…)"

    def sign(self, token: Message) -> bytes:
        """The bytes to hand to a client."""
        body = token.SerializeToString()
        return self._mac(type(token), body) + body

    def open(self, kind: type[Token], signed: bytes, what: str) -> Token:
        """The token inside ``signed``; ``InvalidInput`` when it is none of ours."""
        if not signed:
            raise InvalidInput(f"{what} is missing")
        mac, body = signed[:MAC_SIZE], signed[MAC_SIZE:]
        if not hmac.compare_digest(mac, self._mac(kind, body)):
            raise InvalidInput(f"{what} is damaged or was not given out by this satellite")
        try:
            return kind.FromString(body)
        except DecodeError as error:
            raise InvalidInput(f"{what} cannot be read") from error

    def _mac(self, kind: type[Message], body: bytes) -> bytes:
        label = kind.DESCRIPTOR.full_name.encode()
        return hmac.digest(self._secret, label + b"\0" + body, sha256)[:MAC_SIZE]
