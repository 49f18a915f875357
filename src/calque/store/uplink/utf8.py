"""Text that leaves the client as bytes."""

from __future__ import annotations

from calque.errors import InvalidInput


def encode_utf8(text: str, what: str) -> bytes:
    """The bytes of a text; InvalidInput, naming ``what``, where it is no Unicode."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{what} must be valid Unicode, this one is not: {text!a}") from error
