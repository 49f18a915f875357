"""What a server really does, found out on keys of our own: conditions, ranges, parts, checksums.

Every question is put to the server itself, without what calque would do to make up for a no.
"""

from __future__ import annotations

import base64
import hashlib
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from calque.errors import (
    AlreadyExists,
    CalqueError,
    ConditionNotMatch,
    InvalidInput,
    NotFound,
    Unsupported,
)
from calque.operator.drivers.verbs import CommitConflict
from calque.operator.service import Probe
from calque.operator.services.s3 import marker
from calque.operator.services.s3.client import Answer
from calque.operator.services.s3.probe_requests import ProbeRequests
from calque.operator.services.s3.replies import bare_etag, version_of
from calque.values import MIB

_OTHER = f'"{"0" * 32}"'
"""The ETag of no object here."""
_NEW, _SAME = {"if-none-match": "*"}, {"if-match": _OTHER}
_DATA, _ELSE = b"0123456789", b"other bytes"
_ORDER = ("a", "a-", "a/b", "a0", "B", "é", "\U0001f642")
_MD5 = re.compile(r"[0-9a-fA-F]{32}")
_RANGED = 5 * MIB + 1
"""S3 copies a range only of sources larger than 5 MB."""


class Prober(ProbeRequests):
    """Asks one server; nothing of what it puts there stays."""

    def run(self) -> Iterator[Probe]:
        """Each answer as it is found; keys and uploads are removed at the end, whatever happens."""
        try:
            made = self._put("object", _DATA)
            yield self._versions(made)
            yield _etags(made)
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
        except CalqueError as error:
            return Probe(ask.__name__.strip("_"), False, f"not found out: {error.message}")

    # Conditions: each is asked where it is false and where it holds, and what a refusal has done

    def _writes(self) -> Probe:
        new = self._why_not(
            lambda: self._put("object", _ELSE, _NEW), lambda: self._put(_fresh(), _ELSE, _NEW)
        )
        same = self._why_not(
            lambda: self._put("object", _ELSE, _SAME),
            lambda: self._put("object", _DATA, self._if_match()),
        )
        return _conditions("conditions of writes", "write_conditions", new, same)

    def _commits(self) -> Probe:
        new, same = self._why_no_commits()
        return _conditions("conditions of commits", "commit_conditions", new, same)

    def _why_no_commits(self) -> tuple[str, str]:
        new = self._why_not(
            lambda: self._upload("object", _ELSE, _NEW),
            lambda: self._upload(_fresh(), _ELSE, _NEW),
        )
        same = self._why_not(
            lambda: self._upload("object", _ELSE, _SAME),
            lambda: self._upload("object", _DATA, self._if_match()),
        )
        return new, same

    def _copies(self) -> Probe:
        self._put("other", _ELSE)
        new = self._why_not(
            lambda: self._copy("other", "object", _NEW), lambda: self._copy("other", _fresh(), _NEW)
        )
        same = self._why_not(
            lambda: self._copy("other", "object", _SAME),
            lambda: self._copy("object", "object", self._if_match()),
        )
        if not new and not same:
            return Probe("conditions of copies", True, "kept")
        instead = "none" if self._why_no_commits()[0] else "multipart"
        found = new or f"if_match is {same}"
        return Probe("conditions of copies", False, found, f"copy_if_not_exists={instead}")

    def _reads(self) -> Probe:
        why = self._why_not(
            lambda: self._send("GET", "object", _SAME),
            lambda: self._send("GET", "object", self._if_match()),
        )
        return _switch("conditions of reads", "read_if_match", why)

    def _pins(self) -> Probe:
        self._put("source", _DATA)
        wrong = {"x-amz-copy-source-if-match": _OTHER}
        right = {"x-amz-copy-source-if-match": self._if_match("source")["if-match"]}
        why = self._why_not(
            lambda: self._copy("source", "pinned", wrong),
            lambda: self._copy("source", "pinned", right),
        )
        # Some (Ceph) keep the pin of a copy and ignore that of a part.
        if not why and self._passes(lambda: self._copy_part("source", right)):
            ignored = self._passes(lambda: self._copy_part("source", wrong))
            why = "ignored by copies of parts" if ignored else ""
        return _switch("pins of a copy's source", "source_pins", why)

    def _deletes(self) -> Probe:
        why = self._why_not(
            lambda: self._send("DELETE", "object", _SAME),
            lambda: self._send("DELETE", "object", self._if_match()),
        )
        return _switch("conditions of deletes", "delete_if_match", why)

    def _why_not(self, refused: Callable[[], object], allowed: Callable[[], object]) -> str:
        """Why a condition cannot be relied on; empty where it can.

        ``refused`` is a request whose condition is false, ``allowed`` one whose condition holds.
        """
        self._put("object", _DATA)
        if not self._refuses(refused):
            return "ignored"
        if not self._is_untouched():
            return "refused, and acted on all the same"
        return "" if self._passes(allowed) else "refused although they hold"

    def _is_untouched(self) -> bool:
        try:
            return self._send("GET", "object").body == _DATA
        except NotFound:
            return False

    def _if_match(self, name: str = "object") -> dict[str, str]:
        return {"if-match": self._send("HEAD", name).headers.get("etag", "")}

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

    def _passes(self, request: Callable[[], object]) -> bool:
        """Whether a server does what is asked."""
        try:
            request()
        except (CalqueError, CommitConflict):
            return False
        return True

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
        return _switch("order of listings", "key_order", "" if kept else "not kept")

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
        kept = self.keeps_versions = version_of(made.headers) is not None
        return Probe("versions", True, "on" if kept else "off", "versions=true" if kept else "")


def _fresh() -> str:
    """A name that nothing has yet."""
    return f"new-{uuid.uuid4().hex[:8]}"


def _etags(made: Answer) -> Probe:
    """Reads are held against an ETag that looks like an MD5."""
    etag = bare_etag(made.headers.get("etag")) or ""
    if not _MD5.fullmatch(etag):
        return Probe("ETags", True, "no MD5, and none that looks like one")
    if etag.lower() == hashlib.md5(_DATA, usedforsecurity=False).hexdigest():
        return Probe("ETags", True, "the MD5 of the bytes")
    return Probe("ETags", False, "like an MD5, but not that of the bytes", "md5_etags=false")


def _conditions(name: str, option: str, new: str, same: str) -> Probe:
    if not new and not same:
        return Probe(name, True, "kept")
    kept = "none" if new else "if_not_exists"
    return Probe(name, False, new or f"if_match is {same}", f"{option}={kept}")


def _switch(name: str, option: str, why: str) -> Probe:
    return Probe(name, not why, why or "kept", f"{option}=false" if why else "")
