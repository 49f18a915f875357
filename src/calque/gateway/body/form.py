"""A form of a browser (``multipart/form-data``): fields first, then the file, which is streamed."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from email.message import Message
from email.utils import collapse_rfc2231_value

from calque.gateway.body import checksums
from calque.gateway.body.hashing import BESIDE, Hashing
from calque.gateway.errors import S3Error
from calque.gateway.request import BLOCK, Reader, Request

LARGEST_FIELDS = 128 * 1024
"""Bytes of all that comes before the file, policy and tags among them."""
MOST_FIELDS = 200
FIELDS_PATIENCE = 30.0
"""Seconds within which all of them come: nobody knows yet who sends them."""
LARGEST_HEAD = 16 * 1024
_BOUNDARY = re.compile(r"[ -~]{1,200}")


class Form:
    """Reads the fields; ``file`` is what follows them, to be iterated once."""

    def __init__(self, source: Reader, content_type: str) -> None:
        self._source = source
        self._end = b"\r\n--" + _boundary(content_type)
        self._held = b"\r\n"  # the first boundary has no line before it
        self._room = LARGEST_FIELDS
        self._until = time.monotonic() + FIELDS_PATIENCE
        self.fields: dict[str, str] = {}
        self.filename = ""
        self._read_fields()

    def file(self) -> FormFile:
        """The file, verified against the checksums that fields promise."""
        return FormFile(self._blocks(), checksums.find_given(self.fields))

    def _read_fields(self) -> None:
        self._skip_to_boundary()
        while self._is_next_part():
            head = _parse_head(self._read_until(b"\r\n\r\n", LARGEST_HEAD))
            name = _parameter(head, "name").lower()
            if name == "file":
                self.filename = _parameter(head, "filename")
                return
            # The boundary's own line break is the end of the value.
            value = self._read_until(self._end, LARGEST_FIELDS)
            if name in self.fields:
                # Whichever were taken, the policy may have meant the other.
                raise malformed_form("A field is given twice.")
            if len(self.fields) == MOST_FIELDS:
                raise _too_long()
            try:
                self.fields[name] = value.decode()
            except UnicodeError as error:
                raise malformed_form("A field is no UTF-8.") from error
        raise S3Error("InvalidArgument", "POST requires exactly one file upload per request.")

    def _skip_to_boundary(self) -> None:
        self._read_until(self._end, LARGEST_HEAD)

    def _is_next_part(self) -> bool:
        """What follows a boundary: a line break and a part, or two dashes and the end."""
        self._fill(2)
        mark, self._held = self._held[:2], self._held[2:]
        if mark == b"--":
            return False
        if mark != b"\r\n":
            raise malformed_form()
        # A part without headers begins with its empty line.
        self._held = b"\r\n" + self._held if self._held.startswith(b"\r\n") else self._held
        return True

    def _read_until(self, end: bytes, most: int) -> bytes:
        while end not in self._held:
            if len(self._held) > most:
                raise _too_long()
            if time.monotonic() > self._until:
                raise S3Error("RequestTimeout", "The fields of the form did not come in time.")
            if not self._more():
                raise malformed_form("The form ends too early.")
        found, _, self._held = self._held.partition(end)
        self._room -= len(found) + len(end)
        if self._room < 0:
            raise _too_long()
        return found

    def _blocks(self) -> Iterator[bytes]:
        keep = len(self._end) - 1
        while self._end not in self._held:
            if len(self._held) > keep:
                block, self._held = self._held[:-keep], self._held[-keep:]
                yield block
            if not self._more():
                raise malformed_form("The form ends too early.")
        block, _, self._held = self._held.partition(self._end)
        if block:
            yield block
        while self._source.read(BLOCK):  # what follows the file is ignored, as S3 does
            pass

    def _fill(self, wanted: int) -> None:
        while len(self._held) < wanted:
            if not self._more():
                raise malformed_form("The form ends too early.")

    def _more(self) -> bool:
        block = self._source.read(BLOCK)
        self._held += block
        return bool(block)


class FormFile:
    """The file of a form: bytes with a size that is known at the end."""

    def __init__(self, blocks: Iterator[bytes], promised: dict[str, str]) -> None:
        self._blocks = blocks
        self._promised = promised
        self._hashing = Hashing(["md5", *(name.lower() for name in promised)], BESIDE)
        self.least, self.most = 0, 5 * 1024**4

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for block in self._blocks:
            size += len(block)
            if size > self.most:
                raise S3Error(
                    "EntityTooLarge", "Your proposed upload exceeds the maximum allowed size"
                )
            self._hashing.update(block)
            yield block
        if size < self.least:
            raise S3Error(
                "EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size"
            )
        for name, value in self.checksums.items():
            if value != self._promised[name]:
                raise S3Error("BadDigest", f"The {name} you specified did not match.")

    @property
    def md5(self) -> str:
        return self._hashing.digest("md5").hex()

    @property
    def checksums(self) -> dict[str, str]:
        return {
            name: checksums.encode(self._hashing.digest(name.lower())) for name in self._promised
        }


def is_form(request: Request) -> bool:
    """Whether a browser's form comes."""
    kind = request.headers.get("content-type", "")
    return request.method == "POST" and kind.lower().startswith("multipart/form-data")


def malformed_form(why: str = "") -> S3Error:
    text = "The body of your POST request is not well-formed multipart/form-data."
    return S3Error("MalformedPOSTRequest", f"{text} {why}".rstrip())


def _too_long() -> S3Error:
    return S3Error("MaxPostPreDataLengthExceeded", "The fields of the form are too long.")


def _parameter(head: Message, name: str) -> str:
    """A parameter of Content-Disposition, also where it tells its character set."""
    found = head.get_param(name, "", "content-disposition")
    try:
        return collapse_rfc2231_value(found)
    except (LookupError, UnicodeError):
        return ""


def _boundary(content_type: str) -> bytes:
    message = Message()
    message["content-type"] = content_type
    found = message.get_param("boundary")
    if not isinstance(found, str) or not _BOUNDARY.fullmatch(found):
        raise malformed_form("It has no boundary.")
    return found.encode("latin-1")


def _parse_head(data: bytes) -> Message:
    message = Message()
    for line in data.decode("utf-8", "replace").split("\r\n"):
        name, colon, value = line.partition(":")
        if colon and name.strip().lower() not in message:
            message[name.strip().lower()] = value.strip()
    return message
