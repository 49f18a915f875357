"""Copies inside S3: CopyObject up to the threshold, an upload filled by range copies above it.

Both paths carry over the same: content headers, user metadata and tags as the options say, the
storage class only where ``carry_class`` asks for it. Encryption, access lists, object lock and
website redirects are the target's own. The source is pinned by ETag and version on every request;
since some servers ignore that, the outcome is compared as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from calque.errors import (
    CalqueError,
    ConditionNotMatch,
    IntegrityError,
    InvalidInput,
    NotFound,
    Unavailable,
    Unexpected,
    Unsupported,
)
from calque.operator.drivers.multipart import MultipartDriver
from calque.operator.drivers.one_shot import OneShotDriver
from calque.operator.drivers.stream import write_options
from calque.operator.drivers.verbs import Part
from calque.operator.options import CopyOptions
from calque.operator.service import CopyDriver
from calque.operator.services.s3 import marker
from calque.operator.services.s3.address import copy_source
from calque.operator.services.s3.client import PAYING, Answer, Client, Request, refusal_behind
from calque.operator.services.s3.config import S3Config
from calque.operator.services.s3.object_headers import (
    content_headers,
    tags_header,
    target_conditions,
)
from calque.operator.services.s3.replies import (
    bare_etag,
    checksum_in,
    leaves,
    moment,
    quoted_etag,
    version_of,
)
from calque.operator.services.s3.stat import head, tags_to_carry
from calque.operator.services.s3.uploads import Uploads, multipart_etag
from calque.operator.services.s3.write import Write, put_tags, uncommittable
from calque.values import MIB, Backoff, ByteRange, Metadata, PartPlan

_CONFLICTS = 6
_CONFLICT_BACKOFF = Backoff(first=0.1)
_COMMITS = 3
_COMMIT_BACKOFF = Backoff(first=0.2)
_NEVER_RANGED = 5 * 1000 * 1000
"""S3 takes a range only of sources larger than 5 MB."""
_MD5 = re.compile(r"[0-9a-f]{32}")
_COMPARABLE = ("crc64nvme", "crc32c", "crc32")
"""Checksums that S3 can make of a whole object out of those of its parts."""
_AMAZON = (".amazonaws.com", ".amazonaws.com.cn")


@dataclass(frozen=True, slots=True)
class S3Copy:
    """The verbs of one copy, for the one-shot and for the multipart driver."""

    origin: Client
    """Reads the source."""
    into: Client
    """Makes the target; the copies themselves are its requests."""
    config: S3Config
    source: Metadata
    source_key: str
    target: str
    target_key: str
    options: CopyOptions
    _asked: list[Mapping[str, str]] = field(default_factory=list, repr=False)

    # One request

    def copy_once(self) -> Metadata:
        if self.options.if_not_exists and self.config.copy_if_not_exists == "multipart":
            return self._write_empty()
        headers = {**self._from(), **self._conditions, **self._directives()}
        request = Request("PUT", self.target_key, headers=headers)
        answer = self._send(request)
        fields = leaves(answer.body)
        etag = bare_etag(fields.get("ETag"))
        if etag is None or b"<CopyObjectResult" not in answer.body:
            raise Unexpected(
                f"{self._where}: the reply to a copy has no ETag",
                hint="Whether the target was made is not known: look at it before you go on.",
            )
        made = Metadata(
            path=self.target,
            size=self.source.size,
            etag=etag,
            version=version_of(answer.headers),
            last_modified=moment(fields.get("LastModified")),
            checksum=checksum_in(fields),
        )
        return made if self._proven(etag) else self._compare(made)

    def _write_empty(self) -> Metadata:
        """An upload cannot be empty; a write of nothing keeps the condition too."""
        options = write_options(self._full_source(), self.options)
        return Write(self.into, self.config, self.target, self.target_key, options).run(())

    def _send(self, request: Request) -> Answer:
        """Send the copy; 409 means that it raced with another request, and is tried again."""
        for attempt in range(1, _CONFLICTS + 1):
            try:
                return self.into.send(
                    "copy", self.target, request, idempotent=not self._conditions, slow=True
                )
            except ConditionNotMatch as error:
                refusal = refusal_behind(error)
                if refusal is None or refusal.status != 409:
                    self._say_which(error)
                if attempt == _CONFLICTS:
                    raise
                _CONFLICT_BACKOFF.sleep(attempt)
        raise AssertionError("unreachable")

    def _proven(self, etag: str) -> bool:
        """An MD5 that equals the source's proves the bytes, and so the size and the pin."""
        if self.options.verify == "none":
            return True
        return etag == self.source.etag and _MD5.fullmatch(etag) is not None

    def _compare(self, made: Metadata) -> Metadata:
        """Look at the target, and at the source again where the server may ignore its pin."""
        try:
            self._refuse_changed_source()
        except (ConditionNotMatch, NotFound) as error:
            error.add_note(f"the server ignored the pin: {self._where} may hold other bytes")
            raise
        found = head(self.into, self.target, self.target_key, version=made.version)
        if found.etag != made.etag:
            # Another writer was faster than our look; what we made was what the reply says.
            return made
        found = replace(found, path=self.target, checksum=found.checksum or made.checksum)
        self._compare_listed(found)
        return found

    def _compare_listed(self, made: Metadata) -> None:
        """A source that came from a listing brought no checksum for the copier to compare."""
        listed = self.source.checksum is None and self.source.content_type is None
        if not listed or made.checksum is None or self.options.verify != "checksum":
            return
        source = head(self.origin, self.source.path, self.source_key, version=self.source.version)
        ours, theirs = source.checksum, made.checksum
        if ours is None or ours.algorithm != theirs.algorithm or ours.value == theirs.value:
            return
        raise IntegrityError(
            f"{self._where}: the checksums disagree ({ours} and {theirs})",
            hint="The target is there and is wrong: copy again, or delete it.",
        )

    # Parts

    def initiate(self) -> str:
        source = self._full_source()
        tags = tags_header(source.tags) if self.options.carry_tags else None
        headers = content_headers(source) if self.options.carry_metadata else {}
        if tags:
            headers["x-amz-tagging"] = tags
        headers |= self._class()
        if self._compares:
            headers |= {
                "x-amz-checksum-algorithm": self._checksum[0].upper(),
                "x-amz-checksum-type": "FULL_OBJECT",
            }
        return self._uploads.begin(self.target, self.target_key, headers)

    def copy_part(self, upload: str, number: int, span: ByteRange) -> Part:
        headers = self._from()
        if span.length != self.source.size:
            headers["x-amz-copy-source-range"] = f"bytes={span.offset}-{span.last}"
        try:
            return self._uploads.copy(
                self.target, self.target_key, upload, number, span.length or 0, headers
            )
        except ConditionNotMatch as error:
            raise self._source_changed() from error

    def list_parts(self, upload: str) -> Mapping[int, Part]:
        return self._uploads.data_parts(self.target, self.target_key, upload)

    def complete(self, upload: str, parts: Sequence[Part]) -> Metadata:
        self._refuse_changed_source()
        headers = {**self._conditions, "x-amz-mp-object-size": str(self.source.size)}
        if self._compares:
            headers |= {
                f"x-amz-checksum-{self._checksum[0]}": self._checksum[1],
                "x-amz-checksum-type": "FULL_OBJECT",
            }
        made = self._commit(upload, parts, headers)
        self._tag_afterwards(made)
        found = head(self.into, self.target, self.target_key, version=made.version)
        if found.etag != made.etag:
            return replace(made, size=self.source.size)
        return replace(found, path=self.target)

    def _commit(self, upload: str, parts: Sequence[Part], headers: Mapping[str, str]) -> Metadata:
        """Commit; where the answer was lost, find out whether the server has acted."""
        for attempt in range(1, _COMMITS + 1):
            try:
                return self._uploads.complete(
                    self.target,
                    self.target_key,
                    upload,
                    parts,
                    headers,
                    idempotent=not self._conditions,
                )
            except InvalidInput as error:
                self._uploads.learn_another_mark(upload, error)
                raise
            except Unavailable:
                made = self._find_made(upload, parts)
                if made is not None:
                    return made
                # Without conditions the layers have repeated it already.
                if attempt == _COMMITS or not self._conditions:
                    raise
                _COMMIT_BACKOFF.sleep(attempt)
        raise AssertionError("unreachable")

    def _find_made(self, upload: str, parts: Sequence[Part]) -> Metadata | None:
        try:
            self.list_parts(upload)
        except NotFound:
            return self.find_committed(upload, parts)
        except CalqueError:
            return None
        return None

    def find_committed(self, upload: str, parts: Sequence[Part]) -> Metadata | None:
        try:
            found = head(self.into, self.target, self.target_key)
        except NotFound:
            return None
        if found.size != self.source.size:
            return None
        by_parts = found.etag is not None and found.etag == multipart_etag(self.source.size, parts)
        return found if by_parts or self._same_checksum(found) else None

    def _same_checksum(self, found: Metadata) -> bool:
        ours = self.source.checksum
        return ours is not None and found.checksum == ours

    def abort(self, upload: str) -> None:
        self._uploads.abort(self.target, self.target_key, upload)

    # What both paths share

    @property
    def _uploads(self) -> Uploads:
        return Uploads(self.into)

    @property
    def _where(self) -> str:
        return self.into.location(self.target_key)

    @property
    def _conditions(self) -> dict[str, str]:
        return target_conditions(self.options.if_not_exists, self.options.if_match)

    def _from(self) -> dict[str, str]:
        bucket = self.origin.link.config.bucket
        headers = {"x-amz-copy-source": copy_source(bucket, self.source_key, self.source.version)}
        if self.source.etag:
            headers["x-amz-copy-source-if-match"] = quoted_etag(self.source.etag)
        if self.origin.link.config.requester_pays:
            headers |= PAYING  # the target's requests read the source too
        return headers

    def _directives(self) -> dict[str, str]:
        directives = self._class()
        if not self.options.carry_metadata:
            directives["x-amz-metadata-directive"] = "REPLACE"
        if not self.options.carry_tags:
            directives["x-amz-tagging-directive"] = "REPLACE"
        return directives

    def _class(self) -> dict[str, str]:
        kept = self.source.storage_class
        return {"x-amz-storage-class": kept} if self.options.carry_class and kept else {}

    @property
    def _checksum(self) -> tuple[str, str]:
        found = self.source.checksum
        return (found.algorithm, found.value) if found else ("", "")

    @property
    def _compares(self) -> bool:
        """Whether S3 itself can compare the whole object before it commits."""
        return self.options.verify == "checksum" and self._checksum[0] in _COMPARABLE

    def _full_source(self) -> Metadata:
        """The source as a HEAD knows it; a listing tells neither headers nor tags."""
        source = self.source
        if source.content_type is None and self.options.carry_metadata:
            source = head(self.origin, source.path, self.source_key, version=source.version)
            self._refuse_other(source)
        if self.options.carry_tags:
            source = replace(source, tags=self._tags())
        return source

    def _tags(self) -> Mapping[str, str]:
        """The source's tags, asked for once: a listing tells none, a HEAD not always."""
        if not self.source.tags and not self._asked:
            path, version = self.source.path, self.source.version
            self._asked.append(tags_to_carry(self.origin, path, self.source_key, version))
        return self.source.tags or self._asked[0]

    def _tag_afterwards(self, made: Metadata) -> None:
        tags = self._tags() if self.options.carry_tags else None
        if tags and tags_header(tags) is None:
            put_tags(self.into, self.target, self.target_key, tags, made.version)

    def _refuse_changed_source(self) -> None:
        """Amazon keeps the pin itself. Others may not, so the source must still be the same."""
        if self.into.endpoint.host.endswith(_AMAZON) or self.options.verify == "none":
            return
        version = self.source.version
        self._refuse_other(head(self.origin, self.source.path, self.source_key, version=version))

    def _refuse_other(self, found: Metadata) -> None:
        if found.etag != self.source.etag or found.size != self.source.size:
            raise self._source_changed()

    def _source_changed(self) -> ConditionNotMatch:
        return ConditionNotMatch(
            f"{self.origin.location(self.source_key)} was changed while it was being copied",
            hint="Copy it again.",
        )

    def _say_which(self, error: ConditionNotMatch) -> NoReturn:
        """One 412 may come from the source's pin or from the target's condition."""
        version = self.source.version
        found = head(self.origin, self.source.path, self.source_key, version=version)
        if found.etag != self.source.etag:
            raise self._source_changed() from error
        raise error


def start_driver(verbs: S3Copy) -> CopyDriver:
    """The driver for a copy of this size."""
    size, options, config = verbs.source.size, verbs.options, verbs.config
    by_parts = options.if_not_exists and config.copy_if_not_exists == "multipart"
    if size == 0 or (size <= config.threshold and not by_parts):
        _refuse_unkept(verbs, options, config)
        return OneShotDriver(verbs, size)
    if not config.commits(options.if_not_exists, options.if_match):
        raise uncommittable(verbs._where)
    wanted = options.chunk or config.part_size
    if verbs.into.link.marks_by_size:
        wanted = marker.odd_size(wanted)
    return MultipartDriver(verbs, _plan(size, wanted), concurrent=options.concurrent)


def _refuse_unkept(verbs: S3Copy, options: CopyOptions, config: S3Config) -> None:
    """One request keeps a condition by CopyObject, or, of an empty object, by a write."""
    written = options.if_not_exists and config.copy_if_not_exists == "multipart"
    kept = config.write_conditions != "none" if written else config.copy_if_not_exists == "header"
    if verbs._conditions and not kept:
        raise Unsupported(f"{verbs._where}: this server keeps no such condition on CopyObject")


def _plan(size: int, wanted: int) -> PartPlan:
    if size <= max(_NEVER_RANGED, 5 * MIB):
        return PartPlan(size, size)
    try:
        return PartPlan.make(size, wanted, marker.LIMITS)
    except ValueError as error:
        raise InvalidInput(f"s3: {error}") from error


def resume_driver(verbs: S3Copy, state: Mapping[str, Any]) -> CopyDriver:
    """The driver of an earlier copy."""
    if state.get("driver") == "one-shot":
        return OneShotDriver(verbs, verbs.source.size)
    concurrent = verbs.options.concurrent
    return MultipartDriver.resume(verbs, state, concurrent=concurrent, size=verbs.source.size)
