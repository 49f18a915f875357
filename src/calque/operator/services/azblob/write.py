"""Writes: one Put Blob where the bytes fit one piece, else blocks and their list."""

from __future__ import annotations

import base64
import hashlib
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from calque.errors import ConditionNotMatch, InvalidInput, ResourceExhausted, Unavailable
from calque.operator.chunks import regroup
from calque.operator.drivers.verbs import CommitConflict
from calque.operator.http.exchange import Answer
from calque.operator.layers.chain import Call
from calque.operator.options import WriteOptions
from calque.operator.services.azblob import blocks, marker, resource
from calque.operator.services.azblob.blocks import Block
from calque.operator.services.azblob.errors import not_met
from calque.operator.services.azblob.requests import Requests
from calque.operator.services.azblob.staging import Staging
from calque.values import MIB, Metadata

PIECE = 8 * MIB
"""What one request carries; ``concurrent`` and one more of them are held in memory."""


@dataclass(slots=True)
class Upload:
    """One write. Its conditions are checked by the service at the moment of the commit."""

    requests: Requests
    path: str
    options: WriteOptions
    _mark: str = field(default_factory=marker.fresh)
    _piece: int = field(init=False)

    def __post_init__(self) -> None:
        # The number of blocks is bounded, so a large object needs large ones.
        known = self.options.size_hint or 0
        self._piece = max(PIECE, -(-known // blocks.LIMITS.most))

    def send(self, chunks: Iterable[bytes]) -> Metadata:
        """Write all chunks; an error out of them passes through and nothing is left."""
        pieces = regroup(chunks, self._piece)
        first = next(pieces, b"")
        second = next(pieces, None) if len(first) == self._piece else None
        if second is None:
            return self._whole(first)
        return self._in_blocks(_joined(first, second, pieces))

    @property
    def _conditional(self) -> bool:
        return self.options.if_not_exists or self.options.if_match is not None

    def _headers(self) -> dict[str, str]:
        options = self.options
        return {
            "x-ms-blob-content-type": "application/octet-stream",
            **resource.content_headers(options),
            **resource.user_headers(options, self._mark if self._conditional else None),
            **resource.tag_headers(options.tags),
            **condition_headers(options.if_not_exists, options.if_match),
        }

    def _whole(self, data: bytes) -> Metadata:
        digest = base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
        headers = {**self._headers(), "x-ms-blob-type": "BlockBlob", "Content-MD5": digest}
        client, key, attempts = self.requests.client, self.requests.key(self.path), 0

        def request(call: Call) -> Answer:
            nonlocal attempts
            attempts += 1
            location = self.requests.location(self.path)
            return client.ask(call, location, "PUT", key, headers=headers, body=data)

        try:
            answer = self.requests.chain.send("write", self.path, request)
        except ConditionNotMatch as error:
            # The answer of an earlier attempt may have been lost after it had made the blob.
            made = marker.made_by(self.requests, self.path, self._mark) if attempts > 1 else None
            if made is not None:
                return made
            where, fresh = self.requests.location(self.path), self.options.if_not_exists
            raise not_met(where, if_not_exists=fresh) from error
        return self.requests.made(self.path, answer, len(data))

    def _in_blocks(self, pieces: Iterator[bytes]) -> Metadata:
        staging = Staging(self.requests, self.path, blocks.fresh())
        headers = self._headers()
        try:
            count, size = self._stage(staging, pieces)
            return staging.commit(count, size, headers)
        except CommitConflict as error:
            # The chunks are spent: they cannot be staged again.
            raise self._lost(error) from error
        except BaseException as error:
            staging.discard_after(error)
            if isinstance(error, InvalidInput) and (why := staging.in_the_way(error)) is not None:
                raise why from error
            raise

    def _lost(self, conflict: CommitConflict) -> Exception:
        if self._conditional:
            return ConditionNotMatch(str(conflict), hint="The other write stands.")
        return Unavailable(str(conflict), hint="The other write stands. Write again.")

    def _stage(self, staging: Staging, pieces: Iterator[bytes]) -> tuple[int, int]:
        """Stage all pieces, ``concurrent`` at a time, no more than one read ahead of them."""
        count, size, pending = 0, 0, deque[Future[None]]()
        with ThreadPoolExecutor(self.options.concurrent, thread_name_prefix="calque-put") as pool:
            try:
                for piece in pieces:
                    count, size = count + 1, size + len(piece)
                    if count > blocks.LIMITS.most:
                        raise ResourceExhausted(
                            f"{self.requests.location(self.path)} is more than "
                            f"{blocks.LIMITS.most} blocks of {self._piece} bytes",
                            hint="Say how large it is (size_hint), so that blocks can be larger.",
                        )
                    if len(pending) >= self.options.concurrent:
                        pending.popleft().result()
                    block = Block(staging.write, count)
                    pending.append(pool.submit(self._put_block, block, piece))
                while pending:
                    pending.popleft().result()
            finally:
                for future in pending:
                    future.cancel()
        return count, size

    def _put_block(self, block: Block, data: bytes) -> None:
        digest = base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
        self.requests.about(
            "write_part",
            self.path,
            "PUT",
            {"comp": "block", "blockid": block.id},
            headers={"Content-MD5": digest},
            body=data,
        )


def condition_headers(if_not_exists: bool, if_match: str | None) -> dict[str, str]:
    """The conditions on a target."""
    if if_not_exists:
        return {"If-None-Match": "*"}
    return {"If-Match": resource.quoted(if_match)} if if_match is not None else {}


def _joined(first: bytes, second: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield second
    yield from rest
