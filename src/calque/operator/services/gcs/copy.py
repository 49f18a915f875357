"""Copies within GCS: rewrite, one call after another with the token of the last.

The source is named with its generation, so exactly the bytes that were looked at are copied, in a
versioned bucket even after a newer object took the name. A conditional copy marks its target with
its own id (see ``marker``), so that a lost answer is told from a lost race.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from calque.errors import (
    CalqueError,
    CheckpointInvalid,
    ConditionNotMatch,
    NotFound,
    Unexpected,
)
from calque.operator.drivers.rewrite import RewriteDriver
from calque.operator.drivers.verbs import Rewritten
from calque.operator.http.exchange import Answer
from calque.operator.layers.chain import Call
from calque.operator.options import CopyOptions
from calque.operator.service import CopyDriver
from calque.operator.services.gcs import marker
from calque.operator.services.gcs.client import document, object_path
from calque.operator.services.gcs.errors import BucketMissing, is_missing_bucket, not_met, refusal
from calque.operator.services.gcs.requests import Requests
from calque.operator.services.gcs.resource import body_of, metadata_of
from calque.values import MIB, Metadata


class SourceGone(NotFound):
    """The pinned generation is not there; why, is looked up when the request is over."""


@dataclass(slots=True)
class GcsCopy:
    """The rewrite of one object; ``id`` is this copy's own and travels in its checkpoint."""

    origin: Requests
    into: Requests
    source: Metadata
    target: str
    options: CopyOptions
    id: str = field(default_factory=marker.fresh)
    _condition: str | None = None

    @property
    def _conditional(self) -> bool:
        return self.options.if_not_exists or self.options.if_match is not None

    def rewrite(self, token: str | None) -> Rewritten:
        """One call. Parameters and body are the same in each, as the service demands."""
        url, body, attempts = self._url(token), self._body(), 0

        def request(call: Call) -> Rewritten:
            nonlocal attempts
            attempts += 1
            answer = self.into.client.exchange(
                call, "POST", url, headers={"Content-Type": "application/json"}, body=body
            )
            if answer.status != 200:
                raise self._refusal(answer, token)
            return self._reply(document(answer, self._location))

        try:
            return self.into.chain.send("rewrite", self.target, request, slow=True)
        except ConditionNotMatch:
            # The answer of an earlier attempt may have been lost after it had made the target.
            made = self.committed() if attempts > 1 else None
            if made is None:
                raise
            return Rewritten(self.source.size, self.source.size, None, made)
        except SourceGone as error:
            raise self._source_gone() from error

    def committed(self) -> Metadata | None:
        """The target, if it bears this copy's mark."""
        if not self._conditional:
            return None
        return marker.made_by(self.into, self.target, self.id)

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
            "maxBytesRewrittenPerCall": None if chunk is None else -(-chunk // MIB) * MIB,
            "rewriteToken": token,
        }
        return self.into.client.url(f"{source}/rewriteTo/b/{bucket}/o/{target}", query)

    def _target_generation(self) -> str | None:
        if self.options.if_not_exists:
            return "0"
        if self._condition is None:
            # Looked up once: every call of a rewrite must carry the same condition.
            self._condition = self.into.generation_of(self.target, self.options.if_match)
        return self._condition

    def _body(self) -> bytes:
        """Empty where the service's own rule carries the metadata over, else all of it."""
        options = self.options
        if options.carry_metadata and not options.carry_class and not self._conditional:
            return b""
        carried = self.source if options.carry_metadata else Metadata(path=self.source.path)
        if not options.carry_class:
            carried = replace(carried, storage_class=None)
        elif not options.carry_metadata:
            carried = replace(carried, storage_class=self.source.storage_class)
        # Without a type the service would take the body for empty and keep the source's metadata.
        resource = {"contentType": "application/octet-stream", **body_of(carried)}
        if self._conditional:
            resource = marker.marked(resource, self.id)
        return json.dumps(resource).encode()

    def _reply(self, reply: Mapping[str, Any]) -> Rewritten:
        try:
            copied, total = int(reply["totalBytesRewritten"]), int(reply["objectSize"])
            done = bool(reply["done"])
            made = metadata_of(reply["resource"], self.target) if done else None
        except (KeyError, ValueError, TypeError) as error:
            raise Unexpected(
                f"GCS answered the rewrite to {self._location} without what it must say"
            ) from error
        return Rewritten(copied, total, None if done else reply.get("rewriteToken"), made)

    def _refusal(self, answer: Answer, token: str | None) -> CalqueError:
        if token is not None and answer.status in (400, 410):
            return CheckpointInvalid(
                f"GCS no longer takes the token of the copy to {self._location}",
                hint="Tokens live for a week and belong to one copy. Copy anew.",
            )
        if answer.status == 412:
            return not_met(self._location, if_not_exists=self.options.if_not_exists)
        if answer.status == 404 and not is_missing_bucket(answer):
            return SourceGone(f"the source of {self._location} is not there any more")
        return refusal(answer, self._location, "copy to")

    def _source_gone(self) -> CalqueError:
        """The pinned generation is not there any more: replaced, or deleted?"""
        where = self.origin.location(self.source.path)
        try:
            found = self.origin.stat(self.source.path, self.source.version)
        except NotFound:
            found = None
        if found is not None and found.version == self.source.version:
            return self._no_target()
        try:
            self.origin.stat(self.source.path)
        except NotFound:
            return NotFound(f"the source {where} was deleted before it was copied")
        return ConditionNotMatch(
            f"the source {where} was replaced before it was copied",
            hint="Copy again to get the new object; the target is untouched.",
        )

    def _no_target(self) -> CalqueError:
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


def driver_of(verbs: GcsCopy) -> CopyDriver:
    """Rewrite serves every size: a small object, or a near one, takes a single call."""
    return GcsRewriteDriver(verbs, verbs.source.size)


def resumed_driver(verbs: GcsCopy, state: Mapping[str, Any]) -> CopyDriver:
    """The driver of an earlier copy, from its token and its id."""
    if state.get("driver") != "rewrite" or not isinstance(state.get("copy"), str):
        raise CheckpointInvalid("the checkpoint is not one of a GCS copy")
    verbs.id = state["copy"]
    return GcsRewriteDriver.resume(verbs, state, size=verbs.source.size)
