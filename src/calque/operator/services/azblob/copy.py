"""Copies within Azure: one request up to the threshold, blocks staged from the source above it.

The service that holds the target reads the source by a URL that is signed anew for each request.
Every request carries the source's etag, so that bytes of two blobs are never mixed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from calque.errors import (
    Aborted,
    CalqueError,
    CheckpointInvalid,
    ConditionNotMatch,
    IntegrityError,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    TimedOut,
    Unexpected,
)
from calque.operator.drivers.blocks import BlocksDriver
from calque.operator.drivers.one_shot import OneShotDriver
from calque.operator.drivers.verbs import CommitConflict, Part
from calque.operator.http.exchange import Answer
from calque.operator.layers.chain import Call
from calque.operator.layers.stop import sleep_unless_stopped
from calque.operator.options import CopyOptions
from calque.operator.service import CopyDriver
from calque.operator.services.azblob import blocks, resource
from calque.operator.services.azblob.blocks import Block
from calque.operator.services.azblob.client import Client
from calque.operator.services.azblob.marker import find_marked
from calque.operator.services.azblob.staging import Staging
from calque.operator.services.azblob.stat import head, stat_made, tags_to_carry
from calque.operator.services.azblob.write import condition_headers
from calque.operator.services.carry import metadata_to_carry
from calque.operator.services.conditional import condition_error, send_marked, source_error
from calque.values import Backoff, ByteRange, Metadata, PartPlan

PENDING_SECONDS = 24 * 3600.0
_POLL = Backoff(first=0.05, most=5.0, jitter=0.0)
"""Between two looks at a pending copy."""


@dataclass(slots=True)
class AzblobCopy:
    """The verbs of one copy, for the one-shot and for the blocks driver."""

    origin: Client
    into: Client
    source: Metadata
    target: str
    options: CopyOptions
    write: str = field(default_factory=blocks.new_write)
    resumed: bool = False
    """An earlier process may have made the target already, which then bears ``write``."""

    @property
    def _location(self) -> str:
        return self.into.location(self.target)

    @property
    def _conditional(self) -> bool:
        return self.options.if_not_exists or self.options.if_match is not None

    @property
    def carries_as_one(self) -> bool:
        """Whether one request does as wished: it carries content headers and may carry the tier."""
        options = self.options
        return options.carry_metadata and (options.carry_class or not self.source.storage_class)

    @property
    def is_one_request(self) -> bool:
        """Whether the service copies the blob, tags and all, in one request."""
        size, threshold = self.source.size, self.into.link.config.threshold
        return size == 0 or (size <= threshold and self.carries_as_one)

    @property
    def _staging(self) -> Staging:
        return Staging(self.into, self.target, self.write)

    def copy_once(self) -> Metadata:
        """The whole blob in one synchronous request; one that answers pending is waited for."""
        if not self.carries_as_one:
            return self.commit(())  # an empty blob, with what is wished beside its bytes
        headers = self._whole_headers()

        def request(call: Call) -> Answer:
            # Signed anew for each attempt: a retry may come after the last signature has ended.
            signed = {**headers, **self._source_headers()}
            return self.into.ask(call, self.target, "PUT", headers=signed)

        try:
            answer = send_marked(
                self.into.chain,
                "copy",
                self.target,
                request,
                lambda: find_marked(self.into, self.target, self.write),
                failures=(CalqueError,),
                repeated=self.resumed,
                slow=True,
            )
        except CalqueError as error:
            # A refusal may be about the source or about the target, and the code does not tell.
            if (changed := self._find_change(error)) is not None:
                raise changed from error
            if isinstance(error, ConditionNotMatch):
                fresh = self.options.if_not_exists
                raise condition_error(self._location, if_not_exists=fresh) from error
            raise
        if isinstance(answer, Metadata):
            return answer
        # Who has waited looks anew: the etag of the answer was that of the pending blob.
        if self._await(answer.headers):
            return resource.metadata_of(self.target, head(self.into, self.target))
        return stat_made(self.into, self.target, answer, self.source.size)

    def _whole_headers(self) -> dict[str, str]:
        options, source = self.options, self.source
        headers = {
            "x-ms-requires-sync": "true",
            "x-ms-copy-source-tag-option": "COPY" if options.carry_tags else "REPLACE",
            **condition_headers(options.if_not_exists, options.if_match),
        }
        if self._conditional:
            headers |= resource.user_headers(source, self.write)
        if options.carry_class and source.storage_class:
            headers["x-ms-access-tier"] = source.storage_class
        return headers

    def _source_headers(self) -> dict[str, str]:
        """The source's URL and pin: made for one request, never kept."""
        url, headers = self.origin.link.sign_source(self.origin.key(self.source.path))
        headers["x-ms-copy-source"] = url
        headers["x-ms-source-if-match"] = resource.quote_etag(self.source.etag or "")
        return headers

    def _await(self, headers: Mapping[str, str]) -> bool:
        """Return once the copy is a success: whether it had to be waited for.

        Raises where it failed or was aborted.
        """
        if headers.get("x-ms-copy-status", "success") == "success":
            return False
        copy = headers.get("x-ms-copy-id", "")
        try:
            headers = self._wait_until_settled(headers)
        except BaseException as error:
            self._abort_pending(copy, error)
            raise
        status = headers.get("x-ms-copy-status", "")
        if status == "success":
            return True
        why = headers.get("x-ms-copy-status-description", "no reason was given")
        if status == "aborted":
            raise Aborted(f"the copy to {self._location} was aborted by another: {why}")
        raise Unexpected(f"the copy to {self._location} ended as {status or 'unknown'}: {why}")

    def _wait_until_settled(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """The headers of the target once its copy is pending no more."""
        limit, waits = time.monotonic() + PENDING_SECONDS, _POLL.waits()
        while headers.get("x-ms-copy-status") == "pending":
            if time.monotonic() > limit:
                raise TimedOut(f"the copy to {self._location} is still pending")
            sleep_unless_stopped(self.into.chain, next(waits), f"the copy to {self._location}")
            headers = head(self.into, self.target)
        return headers

    def _abort_pending(self, copy: str, error: BaseException) -> None:
        """Stop a copy that nobody waits for any more; it would go on at the server otherwise."""
        if not copy:
            return
        query, action = {"comp": "copy", "copyid": copy}, {"x-ms-copy-action": "abort"}
        try:
            self.into.send("abort", self.target, "PUT", query, headers=action)
        except (ConditionNotMatch, NotFound):
            pass  # it has ended in the meantime, or its target is gone
        except CalqueError as failure:
            error.add_note(f"left behind: the pending copy {copy} ({failure.message})")

    def stage(self, number: int, span: ByteRange) -> Part:
        """One block, copied by the service from the source's range."""
        block = Block(self.write, number)
        query = {"comp": "block", "blockid": block.id}
        ranged = {"x-ms-source-range": f"bytes={span.offset}-{span.last}"}

        def request(call: Call) -> Answer:
            headers = {**ranged, **self._source_headers()}
            return self.into.ask(call, self.target, "PUT", query, headers=headers)

        try:
            self.into.chain.send("copy_part", self.target, request)
        except CalqueError as error:
            why = self._find_change(error) or self._staging.explain_refusal(error)
            if why is not None:
                raise why from error
            raise
        return Part(number, block.id, span.length or 0)

    def list_staged(self) -> Mapping[int, Part]:
        return self._staging.list_staged()

    def commit(self, parts: Sequence[Part]) -> Metadata:
        """The blocks become the blob, with everything that is carried over."""
        options, source = self.options, self.source
        if [part.number for part in parts] != list(range(1, len(parts) + 1)):
            raise IntegrityError(f"the blocks of {self._location} are not in one row")
        carried = metadata_to_carry(source, options)
        headers = {
            "x-ms-blob-content-type": "application/octet-stream",
            **resource.content_headers(carried),
            **resource.user_headers(carried),
            **resource.tag_headers(source.tags if options.carry_tags else None),
            **condition_headers(options.if_not_exists, options.if_match),
        }
        # Blocks have no MD5 of the whole; the source's is carried, so that readers can check.
        if options.carry_metadata and source.checksum is not None:
            headers["x-ms-blob-content-md5"] = source.checksum.value
        # Just before the commit, which takes whatever blocks there are under these ids.
        self._compare(parts)
        return self._staging.commit(len(parts), source.size, headers)

    def _compare(self, parts: Sequence[Part]) -> None:
        """What the service holds must be what was staged, before it becomes the blob."""
        held = self.list_staged() if parts else {}
        for part in parts:
            found = held.get(part.number)
            if found is None:
                raise CommitConflict(f"staged blocks of {self._location} were thrown away")
            if found.size != part.size:
                raise IntegrityError(
                    f"block {part.number} of {self._location} holds {found.size} bytes "
                    f"where {part.size} were to be copied",
                    hint="The target is untouched. Copy again.",
                )

    def find_committed(self, parts: Sequence[Part]) -> Metadata | None:
        return self._staging.find_committed()

    def discard(self) -> None:
        self._staging.discard()

    def _find_change(self, error: CalqueError) -> CalqueError | None:
        """What became of the source, where a request that reads it was refused for that.

        The codes do not tell reliably whether it is source or target, so the source is looked at.
        """
        if not isinstance(error, NotFound | ConditionNotMatch | PermissionDenied):
            return None
        where = self.origin.location(self.source.path)
        try:
            now = head(self.origin, self.source.path)
        except NotFound:
            return source_error(where, deleted=True)
        except CalqueError:
            return None  # the first error tells more than one of looking for its reason
        if resource.unquote_etag(now.get("etag")) == self.source.etag:
            return None
        return source_error(where, deleted=False)


class AzblobOneShotDriver(OneShotDriver):
    """The one-request driver, with the write's id in its checkpoint."""

    def __init__(self, verbs: AzblobCopy) -> None:
        super().__init__(verbs, verbs.source.size)
        self._write = verbs.write

    def state(self) -> Mapping[str, Any]:
        return {**super().state(), "write": self._write}


class AzblobBlocksDriver(BlocksDriver):
    """The blocks driver, with the write's id in its checkpoint."""

    write: str = ""

    def state(self) -> Mapping[str, Any]:
        return {**super().state(), "write": self.write}


def make_driver(verbs: AzblobCopy, state: Mapping[str, Any] | None = None) -> CopyDriver:
    """The driver of a copy; with a state, of the earlier copy that it was kept of."""
    return _start(verbs) if state is None else _resume(verbs, state)


def _start(verbs: AzblobCopy) -> CopyDriver:
    """The driver for a copy of this size and these wishes."""
    size, options, config = verbs.source.size, verbs.options, verbs.into.link.config
    if verbs.is_one_request:
        return AzblobOneShotDriver(verbs)
    if options.carry_tags:
        # One request copies tags unread; blocks are committed with tags that we must know.
        tags_to_carry(verbs.origin, verbs.source)
    try:
        plan = PartPlan.make(size, options.chunk or config.part_size, blocks.LIMITS)
    except ValueError as error:
        raise ResourceExhausted(
            f"{verbs.source.path!r} is too large for a blob: {error}"
        ) from error
    driver = AzblobBlocksDriver(verbs, plan, concurrent=options.concurrent)
    driver.write = verbs.write
    return driver


def _resume(verbs: AzblobCopy, state: Mapping[str, Any]) -> CopyDriver:
    """The driver of an earlier copy."""
    write = state.get("write")
    if state.get("driver") not in ("blocks", "one-shot") or not blocks.is_write(write):
        raise CheckpointInvalid("the checkpoint is not one of an Azure copy")
    verbs.write, verbs.resumed = str(write), True
    if state["driver"] == "one-shot":
        return AzblobOneShotDriver(verbs)
    driver = AzblobBlocksDriver.resume_blocks(
        verbs, state, concurrent=verbs.options.concurrent, size=verbs.source.size
    )
    driver.write = verbs.write
    return driver
