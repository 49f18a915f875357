"""Requests to a server that is tried out, on keys of their own.

They are sent as they are: nothing of what calque would do to make up for a server's faults.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from calque.errors import CalqueError
from calque.operator.drivers.verbs import Part
from calque.operator.services.s3.address import copy_source
from calque.operator.services.s3.client import Answer, Client, Request
from calque.operator.services.s3.list import list_keys
from calque.operator.services.s3.replies import blocks, leaves
from calque.operator.services.s3.uploads import Uploads


@dataclass(slots=True)
class ProbeRequests:
    """Below ``base``, a prefix of its own; ``_clean`` leaves nothing there."""

    client: Client
    prefix: str
    base: str = field(default_factory=lambda: f"calque-doctor-{uuid.uuid4().hex[:12]}/")
    keeps_versions: bool = False

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

    def _copy_part(self, source: str, headers: Mapping[str, str]) -> None:
        upload, key = self._begin("part"), self._key("part")
        sent = {"x-amz-copy-source": self._source(source), **headers}
        try:
            self._uploads.copy("", key, upload, 1, 1, sent)
        finally:
            with suppress(CalqueError):
                self._uploads.abort("", key, upload)

    def _complete(self, name: str, upload: str, part: Part, headers: Mapping[str, str]) -> None:
        key = self._key(name)
        self._uploads.complete("", key, upload, [part], headers, idempotent=False)

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
        if self.keeps_versions:
            with suppress(CalqueError):
                self._delete_versions()

    def _delete_versions(self) -> None:
        """What a bucket with versions keeps of keys that were deleted, deletes among them."""
        query = [("versions", ""), ("prefix", self._key(""))]
        body = self.client.send("probe", "", Request("GET", None, query=query)).body
        for block in (*blocks(body, "Version"), *blocks(body, "DeleteMarker")):
            version = leaves(block)
            request = Request(
                "DELETE",
                version["Key"],
                query=[("versionId", version["VersionId"])],
                accepts=(200, 204),
            )
            self.client.send("probe", "", request)
