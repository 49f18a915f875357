"""What a server really does, found out on keys of our own: conditions, ranges, parts, checksums.

Every question is put to the server itself, without what calque would do to make up for a no.
"""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from calque.errors import (
    AlreadyExists,
    CalqueError,
    ConditionNotMatch,
    InvalidInput,
    NotFound,
    PermissionDenied,
    Unsupported,
)
from calque.operator.drivers.verbs import CommitConflict, Part
from calque.operator.service import Probe
from calque.operator.services.s3 import marker
from calque.operator.services.s3.address import copy_source
from calque.operator.services.s3.client import Answer, Client, Request
from calque.operator.services.s3.list import list_keys
from calque.operator.services.s3.replies import version_of
from calque.operator.services.s3.uploads import Uploads
from calque.values import MIB

_OTHER = f'"{"0" * 32}"'
"""The ETag of no object here."""
_NEW, _SAME = {"if-none-match": "*"}, {"if-match": _OTHER}
_ORDER = ("a", "a-", "a/b", "a0", "B", "é", "\U0001f642")
_RANGED = 5 * MIB + 1
"""S3 copies a range only of sources larger than 5 MB."""


@dataclass(slots=True)
class Prober:
    """Asks one server; ``base`` is a prefix of its own, and nothing below it stays."""

    client: Client
    prefix: str
    base: str = field(default_factory=lambda: f"calque-doctor-{uuid.uuid4().hex[:12]}/")

    def run(self) -> Iterator[Probe]:
        """Each answer as it is found; keys and uploads are removed at the end, whatever happens."""
        try:
            made = self._put("object", b"0123456789")
            yield self._versions(made)
            for ask in (
                *(self._reads, self._ranges, self._writes, self._commits, self._copies),
                *(self._pins, self._deletes, self._marker, self._part_copies, self._checksums),
                *(self._order, self._backslash, self._slashes),
            ):
                yield self._answer_or_say_why(ask)
        finally:
            self._clean()

    def _answer_or_say_why(self, ask: Callable[[], Probe]) -> Probe:
        """One question that a server trips over does not keep the others from being asked."""
        try:
            return ask()
        except PermissionDenied:
            raise
        except CalqueError as error:
            return Probe(ask.__name__.strip("_"), False, f"not found out: {error.message}")

    # Conditions

    def _writes(self) -> Probe:
        new = self._refuses(lambda: self._put("object", b"0123456789", _NEW))
        same = self._refuses(lambda: self._put("object", b"0123456789", _SAME))
        return _conditions("conditions of writes", "write_conditions", new, same)

    def _commits(self) -> Probe:
        new = self._refuses(lambda: self._upload("object", b"0123456789", _NEW))
        same = self._refuses(lambda: self._upload("object", b"0123456789", _SAME))
        return _conditions("conditions of commits", "commit_conditions", new, same)

    def _copies(self) -> Probe:
        new = self._refuses(lambda: self._copy("object", "object", _NEW))
        same = self._refuses(lambda: self._copy("object", "object", _SAME))
        if new and same:
            return Probe("conditions of copies", True, "kept")
        committed = self._refuses(lambda: self._upload("object", b"0123456789", _NEW))
        instead = "multipart" if committed else "none"
        return Probe("conditions of copies", False, "ignored", f"copy_if_not_exists={instead}")

    def _reads(self) -> Probe:
        kept = self._refuses(lambda: self._send("GET", "object", _SAME))
        return _switch("conditions of reads", "read_if_match", kept)

    def _pins(self) -> Probe:
        pinned = {"x-amz-copy-source-if-match": _OTHER}
        kept = self._refuses(lambda: self._copy("object", "copied", pinned))
        return _switch("pins of a copy's source", "source_pins", kept)

    def _deletes(self) -> Probe:
        self._put("deleted", b"x")
        kept = self._refuses(lambda: self._send("DELETE", "deleted", _SAME))
        return _switch("conditions of deletes", "delete_if_match", kept)

    # Bytes and parts

    def _ranges(self) -> Probe:
        answer = self._send("GET", "object", {"range": "bytes=2-4"})
        if answer.body == b"234" and answer.headers.get("content-range") == "bytes 2-4/10":
            return Probe("ranges", True, "kept")
        return Probe("ranges", False, "ignored: reads of a part of an object do not work here")

    def _marker(self) -> Probe:
        """Whether a part that the commit does not name is dropped, as S3 says."""
        name, by_size = "the marker part", "upload_mark=size"
        try:
            upload = self._begin("marked", mark=True)
            part = self._uploads.put("", self._key("marked"), upload, 1, b"data", {})
            self._complete("marked", upload, part, {})
        except (InvalidInput, Unsupported) as error:
            return Probe(name, False, f"refused: {error.message}", by_size)
        held = int(self._send("HEAD", "marked").headers.get("content-length") or 0)
        if held != 4:
            return Probe(name, False, "it becomes data", by_size)
        return Probe(name, True, "kept, and left out of the object")

    def _part_copies(self) -> Probe:
        self._put("large", bytes(_RANGED))
        source = {"x-amz-copy-source": self._source("large")}
        ranged = {**source, "x-amz-copy-source-range": f"bytes=1-{_RANGED - 1}"}
        try:
            upload = self._begin("parts")
            key = self._key("parts")
            part = self._uploads.copy("", key, upload, 1, _RANGED - 1, ranged)
            self._complete("parts", upload, part, {})
            size = int(self._send("HEAD", "parts").headers.get("content-length") or 0)
        except CalqueError as error:
            why = f"refused: {error.message}"
            return Probe("copies of parts", False, why, "threshold=5368709120")
        if size != _RANGED - 1:
            why = f"the range is ignored: {size} bytes"
            return Probe("copies of parts", False, why, "threshold=5368709120")
        return Probe("copies of parts", True, "kept")

    def _checksums(self) -> Probe:
        wrong = base64.b64encode(hashlib.md5(b"other", usedforsecurity=False).digest()).decode()
        ours = base64.b64encode(hashlib.md5(b"data", usedforsecurity=False).digest()).decode()
        crc = {"x-amz-checksum-crc32": marker.crc32(b"data")}
        bad = {"x-amz-checksum-crc32": marker.crc32(b"other")}
        if self._takes(crc) and not self._takes(bad):
            return Probe("checksums of writes", True, "crc32")
        if self._takes({"content-md5": ours}) and not self._takes({"content-md5": wrong}):
            return Probe("checksums of writes", False, "md5 alone", "checksum=md5")
        option = "" if self._takes(crc) else "checksum=none"
        return Probe("checksums of writes", False, "none is compared", option)

    def _takes(self, check: Mapping[str, str]) -> bool:
        try:
            self._put("checked", b"data", check)
        except CalqueError:
            return False
        return True

    # Keys

    def _order(self) -> Probe:
        written = [name for name in _ORDER if self._can_put(f"order/{name}")]
        listed = self._list_names("order/")
        if sorted(listed) != sorted(written):
            return Probe("listings", False, f"not what was written: {', '.join(listed)}")
        kept = listed == sorted(written, key=str.encode)
        return _switch("order of listings", "key_order", kept)

    def _can_put(self, name: str) -> bool:
        """What lies on a file system has no ``a/b`` beside an ``a``."""
        with suppress(CalqueError):
            self._put(name, b"")
            return True
        return False

    def _backslash(self) -> Probe:
        name = "keys with a backslash"
        with suppress(CalqueError):
            self._put("back\\slash", b"x")
            if self._list_names("back") == ["\\slash"]:
                return Probe(name, True, "kept")
        return Probe(name, False, "changed or refused", "unfit_in_keys=\\")

    def _slashes(self) -> Probe:
        name = "keys with two slashes"
        try:
            self._put("two//slashes", b"x")
            self._send("HEAD", "two/slashes")
        except NotFound:
            return Probe(name, True, "kept apart")
        except CalqueError as error:
            return Probe(name, False, f"refused: {error.message}")
        return Probe(name, False, "taken for one: calque mv refuses to move between such keys")

    def _versions(self, made: Answer) -> Probe:
        kept = version_of(made.headers) is not None
        return Probe("versions", True, "on" if kept else "off", "versions=true" if kept else "")

    # Requests

    @property
    def _uploads(self) -> Uploads:
        return Uploads(self.client)

    def _key(self, name: str) -> str:
        return f"{self.prefix}{self.base}{name}"

    def _source(self, name: str) -> str:
        return copy_source(self.client.link.config.bucket, self._key(name), None)

    def _send(
        self, method: str, name: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Answer:
        request = Request(
            method, self._key(name), headers=dict(headers or {}), body=body, accepts=(200, 204, 206)
        )
        return self.client.send("probe", name, request)

    def _put(self, name: str, data: bytes, headers: Mapping[str, str] | None = None) -> Answer:
        return self._send("PUT", name, headers, data)

    def _copy(self, source: str, target: str, headers: Mapping[str, str]) -> Answer:
        # A copy onto itself must change something, so the metadata is replaced.
        sent = {"x-amz-copy-source": self._source(source), "x-amz-metadata-directive": "REPLACE"}
        return self._send("PUT", target, {**sent, **headers})

    def _begin(self, name: str, *, mark: bool = False) -> str:
        if mark:
            return self._uploads.begin("", self._key(name), {})
        request = Request("POST", self._key(name), query=(("uploads", ""),))
        body = self.client.send("probe", name, request).body
        return body.partition(b"<UploadId>")[2].partition(b"<")[0].decode()

    def _upload(self, name: str, data: bytes, headers: Mapping[str, str]) -> None:
        upload = self._begin(name)
        try:
            part = self._uploads.put("", self._key(name), upload, 1, data, {})
            self._complete(name, upload, part, headers)
        finally:
            with suppress(CalqueError):
                self._uploads.abort("", self._key(name), upload)

    def _complete(self, name: str, upload: str, part: Part, headers: Mapping[str, str]) -> None:
        key = self._key(name)
        self._uploads.complete("", key, upload, [part], headers, idempotent=False)

    def _refuses(self, request: Callable[[], object]) -> bool:
        """Whether the server says that the condition is false.

        One that does not know the condition at all keeps it no better than one that ignores it;
        any other error is no answer, and is raised.
        """
        try:
            request()
        except (ConditionNotMatch, AlreadyExists, CommitConflict):
            return True
        except (InvalidInput, Unsupported):
            return False
        return False

    def _list_names(self, name: str) -> list[str]:
        prefix = self._key(name)
        entries = list_keys(
            self.client,
            name,
            prefix,
            after="",
            delimiter="",
            page_size=1000,
            path_of=str,
            ordered=False,
        )
        return [entry.path.removeprefix(prefix) for entry in entries]

    def _clean(self) -> None:
        with suppress(CalqueError):
            for begun in list(self._uploads.list_unfinished("", self._key(""))):
                self._uploads.abort("", begun.key, begun.upload)
        with suppress(CalqueError):
            for name in self._list_names(""):
                self._send("DELETE", name)


def _conditions(name: str, option: str, new: bool, same: bool) -> Probe:
    if new and same:
        return Probe(name, True, "kept")
    kept = "if_not_exists" if new else "none"
    found = "if_match is ignored" if new else "ignored"
    return Probe(name, False, found, f"{option}={kept}")


def _switch(name: str, option: str, kept: bool) -> Probe:
    return Probe(name, kept, "kept" if kept else "not kept", "" if kept else f"{option}=false")
