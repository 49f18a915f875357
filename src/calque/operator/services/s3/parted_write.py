"""A write in parts of the caller's bytes, which another process can go on with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from calque.errors import InvalidInput, NotFound
from calque.operator.drivers.verbs import Part
from calque.operator.services.s3 import marker
from calque.operator.services.s3.stat import head
from calque.operator.services.s3.uploads import Uploads, multipart_etag
from calque.operator.services.s3.write import Write, uncommittable
from calque.values import ByteRange, Metadata, PartPlan


@dataclass(frozen=True, slots=True)
class S3PartedWrite:
    """The verbs of an upload whose parts are sent by the client."""

    write: Write

    @classmethod
    def of(cls, write: Write) -> S3PartedWrite:
        """Refused where the commit would not keep the condition."""
        options = write.options
        if not write.config.commits(options.if_not_exists, options.if_match):
            raise uncommittable(write.client.location(write.key))
        write.refuse_bad_metadata()
        return cls(write)

    @property
    def in_order(self) -> bool:
        return False

    @property
    def _uploads(self) -> Uploads:
        return Uploads(self.write.client)

    def plan(self, size: int, wanted: int | None) -> PartPlan:
        part = wanted or self.write.config.write_part
        if self.write.client.link.marks_by_size:
            part = marker.odd_size(part)
        try:
            return PartPlan.make(size, part, marker.LIMITS)
        except ValueError as error:
            raise InvalidInput(f"{self.write.client.location(self.write.key)}: {error}") from error

    def initiate(self) -> str:
        return self._uploads.begin(self.write.path, self.write.key, self.write.upload_headers())

    def put_part(self, upload: str, number: int, span: ByteRange, data: bytes) -> Part:
        write = self.write
        check = write.check_of(data)
        return self._uploads.put(write.path, write.key, upload, number, data, check)

    def list_parts(
        self, upload: str, plan: PartPlan, known: Mapping[int, Part]
    ) -> Mapping[int, Part]:
        """The server's own list: parts may have landed after the checkpoint was made."""
        return self._uploads.data_parts(self.write.path, self.write.key, upload)

    def is_left(self, upload: str) -> bool:
        try:
            return bool(self._uploads.data_parts(self.write.path, self.write.key, upload))
        except NotFound:
            return False

    def complete(self, upload: str, parts: Sequence[Part]) -> Metadata:
        write, size = self.write, sum(part.size for part in parts)
        headers = {**write.conditions, "x-amz-mp-object-size": str(size)}
        try:
            made = self._uploads.complete(
                write.path, write.key, upload, parts, headers, idempotent=not write.conditions
            )
        except InvalidInput as error:
            self._uploads.learn_another_mark(upload, error)
            raise
        write.tag_afterwards()
        return replace(made, size=size)

    def find_committed(self, upload: str, parts: Sequence[Part]) -> Metadata | None:
        write, size = self.write, sum(part.size for part in parts)
        try:
            found = head(write.client, write.path, write.key)
        except NotFound:
            return None
        made_of = multipart_etag(size, parts)
        return found if found.size == size and made_of and found.etag == made_of else None

    def abort(self, upload: str) -> None:
        self._uploads.abort(self.write.path, self.write.key, upload)

    def release(self) -> None:
        """Nothing is held here: the upload is the server's."""
