"""Copies within GCS: rewrite, one call after another with the token of the last.

The source is named with its generation, so exactly the bytes that were looked at are copied, in a
versioned bucket even after a newer object took the name. A conditional copy marks its target with
its own id (see ``marker``), so that a lost answer is told from a lost race.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from calque.errors import (
    CalqueError,
    CheckpointInvalid,
    NotFound,
    Unexpected,
)
from calque.operator.drivers.rewrite import RewriteDriver
from calque.operator.drivers.verbs import Rewritten
from calque.operator.http.exchange import Answer
from calque.operator.http.told_sizes import count_of
from calque.operator.layers.chain import Call
from calque.operator.options import CopyOptions
from calque.operator.service import CopyDriver
from calque.operator.services.carry import metadata_to_carry
from calque.operator.services.conditional import (
    condition_error,
    new_mark,
    send_marked,
    source_error,
)
from calque.operator.services.gcs.client import Client, document, object_path
from calque.operator.services.gcs.errors import BucketMissing, error_of, is_missing_bucket
from calque.operator.services.gcs.marker import add_mark, find_marked
from calque.operator.services.gcs.resource import body_of, metadata_of
from calque.operator.services.gcs.stat import find_generation, stat
from calque.values import MIB, Metadata


class SourceGone(NotFound):
    """The pinned generation is not there; why, is looked up when the request is over."""


@dataclass(slots=True)
class GcsCopy:
    """The rewrite of one object; ``id`` is this copy's own and travels in its checkpoint."""

    origin: Client
    into: Client
    source: Metadata
    target: str
    options: CopyOptions
    id: str = field(default_factory=new_mark)
    _condition: str | None = None

    @property
    def _conditional(self) -> bool:
        return self.options.if_not_exists or self.options.if_match is not None

    def rewrite(self, token: str | None) -> Rewritten:
        """One call. Parameters and body are the same in each, as the service demands."""
        url, body = self._url(token), self._body()
        headers = {"Content-Type": "application/json"}

        def request(call: Call) -> Rewritten:
            answer = self.into.link.exchange(call, "POST", url, headers=headers, body=body)
            if answer.status != 200:
                raise self._error_of(answer, token)
            return self._read_reply(document(answer, self._location))

        try:
            done = send_marked(
                self.into.chain, "rewrite", self.target, request, self.find_committed, slow=True
            )
        except SourceGone as error:
            # After the request: layers time and repeat that, and not the search for a reason.
            raise self._explain_missing() from error
        if isinstance(done, Metadata):
            return Rewritten(self.source.size, self.source.size, None, done)
        return done

    def find_committed(self) -> Metadata | None:
        """The target, if it bears this copy's mark."""
        if not self._conditional:
            return None
        return find_marked(self.into, self.target, self.id)

    @property
    def _location(self) -> str:
        return self.into.location(self.target)

    def _url(self, token: str | None) -> str:
        source = object_path(self.origin.bucket, self.origin.key(self.source.path))
        bucket = quote(self.into.bucket, safe="")
        target = quote(self.into.key(self.target), safe="")
        chunk = self.options.chunk
        query = {
            "sourceGeneration": self.source.version,
            "ifGenerationMatch": self._target_generation(),
            # The service takes whole MiB only.
            "maxBytesRewrittenPerCall": None if chunk is None else -(-chunk // MIB) * MIB,
            "rewriteToken": token,
        }
        return self.into.link.url(f"{source}/rewriteTo/b/{bucket}/o/{target}", query)

    def _target_generation(self) -> str | None:
        if self.options.if_not_exists:
            return "0"
        if self._condition is None:
            # Looked up once: every call of a rewrite must carry the same condition.
            self._condition = find_generation(self.into, self.target, self.options.if_match)
        return self._condition

    def _body(self) -> bytes:
        """Empty where the service's own rule carries the metadata over, else all of it."""
        options = self.options
        if options.carry_metadata and not options.carry_class and not self._conditional:
            return b""
        carried = metadata_to_carry(self.source, options)
        # Without a type the service would take the body for empty and keep the source's metadata.
        resource = {"contentType": "application/octet-stream", **body_of(carried)}
        if self._conditional:
            resource = add_mark(resource, self.id)
        return json.dumps(resource).encode()

    def _read_reply(self, reply: Mapping[str, Any]) -> Rewritten:
        try:
            copied, total = count_of(reply["totalBytesRewritten"]), count_of(reply["objectSize"])
            done = bool(reply["done"])
            made = metadata_of(reply["resource"], self.target) if done else None
        except (KeyError, ValueError, TypeError) as error:
            raise Unexpected(
                f"GCS answered the rewrite to {self._location} without what it must say"
            ) from error
        return Rewritten(copied, total, None if done else reply.get("rewriteToken"), made)

    def _error_of(self, answer: Answer, token: str | None) -> CalqueError:
        # The first call carries the same parameters but the token, so the token is what is refused.
        if token is not None and answer.status in (400, 410):
            return CheckpointInvalid(
                f"GCS no longer takes the token of the copy to {self._location}",
                hint="Tokens live for a week and belong to one copy. Copy anew.",
            )
        if answer.status == 412:
            return condition_error(self._location, if_not_exists=self.options.if_not_exists)
        # Source and target are named in one URL: the 404 itself does not tell which is missing.
        if answer.status == 404 and not is_missing_bucket(answer):
            return SourceGone(f"the source of {self._location} is not there any more")
        return error_of(answer, self._location, "copy to")

    def _explain_missing(self) -> CalqueError:
        """What a 404 means: the source was replaced or deleted, or there is no target bucket."""
        where = self.origin.location(self.source.path)
        try:
            found = stat(self.origin, self.source.path, self.source.version)
        except NotFound:
            found = None
        # The source is as it was, so it is the target that has no bucket.
        if found is not None and found.version == self.source.version:
            return self._missing_bucket_error()
        try:
            stat(self.origin, self.source.path)
        except NotFound:
            return source_error(where, deleted=True)
        return source_error(where, deleted=False)

    def _missing_bucket_error(self) -> CalqueError:
        """The source is as it was: what the service does not find is where the copy goes."""
        bucket = f"gs://{self.into.bucket}"
        return BucketMissing(
            f"cannot copy to {self._location}: the bucket {bucket} does not exist",
            hint="Check its name, and the endpoint if it is not Google's own.",
        )


class GcsRewriteDriver(RewriteDriver):
    """The rewrite driver, with the copy's id in its checkpoint."""

    def __init__(self, verbs: GcsCopy, total: int) -> None:
        super().__init__(verbs, total)
        self._id = verbs.id

    def state(self) -> Mapping[str, Any]:
        return {**super().state(), "copy": self._id}


def make_driver(verbs: GcsCopy, state: Mapping[str, Any] | None = None) -> CopyDriver:
    """The driver of a copy; with a state, of the earlier copy whose token and id it holds.

    Rewrite serves every size: a small object, or a near one, takes a single call.
    """
    if state is None:
        return GcsRewriteDriver(verbs, verbs.source.size)
    if state.get("driver") != "rewrite" or not isinstance(state.get("copy"), str):
        raise CheckpointInvalid("the checkpoint is not one of a GCS copy")
    verbs.id = state["copy"]
    return GcsRewriteDriver.resume(verbs, state, size=verbs.source.size)
