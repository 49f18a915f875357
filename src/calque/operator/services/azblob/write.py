"""Writes: one Put Blob where the bytes fit one piece, else blocks and their list."""

from __future__ import annotations

import base64
import hashlib
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from calque.errors import (
    ConditionNotMatch,
    IntegrityError,
    InvalidInput,
    ResourceExhausted,
    Unavailable,
)
from calque.operator.drivers.verbs import CommitConflict
from calque.operator.http.exchange import Answer
from calque.operator.interruptible import result_of
from calque.operator.layers.chain import Call
from calque.operator.options import WriteOptions
from calque.operator.services.azblob import blocks, resource
from calque.operator.services.azblob.blocks import Block
from calque.operator.services.azblob.client import Client
from calque.operator.services.azblob.marker import find_marked
from calque.operator.services.azblob.staging import Staging
from calque.operator.services.azblob.stat import stat_made
from calque.operator.services.conditional import condition_error, new_mark, send_marked
from calque.operator.services.pieces import whole_or_pieces
from calque.values import MIB, Metadata

PIECE = 8 * MIB
"""What one request carries; ``concurrent`` and one more of them are held in memory."""


@dataclass(slots=True)
class Upload:
    """One write. Its conditions are checked by the service at the moment of the commit."""

    client: Client
    path: str
    options: WriteOptions
    _mark: str = field(default_factory=new_mark)
    _piece: int = field(init=False)

    def __post_init__(self) -> None:
        # The number of blocks is bounded, so a large object needs large ones.
        known = self.options.size_hint or 0
        self._piece = max(PIECE, -(-known // blocks.LIMITS.most))

    def send(self, chunks: Iterable[bytes]) -> Metadata:
        """Write all chunks; an error out of them passes through and nothing is left."""
        data = whole_or_pieces(chunks, self._piece)
        return self._send_whole(data) if isinstance(data, bytes) else self._send_blocks(data)

    @property
    def _location(self) -> str:
        return self.client.location(self.path)

    @property
    def _conditional(self) -> bool:
        return self.options.if_not_exists or self.options.if_match is not None

    def headers(self) -> dict[str, str]:
        """What the request that makes the blob says of it, and on which conditions."""
        options = self.options
        return {
            "x-ms-blob-content-type": "application/octet-stream",
            **resource.content_headers(options),
            **resource.user_headers(options, self._mark if self._conditional else None),
            **resource.tag_headers(options.tags),
            **condition_headers(options.if_not_exists, options.if_match),
        }

    def _send_whole(self, data: bytes) -> Metadata:
        digest = base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
        headers = {**self.headers(), "x-ms-blob-type": "BlockBlob", "Content-MD5": digest}

        def request(call: Call) -> Answer:
            return self.client.ask(call, self.path, "PUT", headers=headers, body=data)

        def find_made() -> Metadata | None:
            return find_marked(self.client, self.path, self._mark)

        try:
            answer = send_marked(self.client.chain, "write", self.path, request, find_made)
        except ConditionNotMatch as error:
            fresh = self.options.if_not_exists
            raise condition_error(self._location, if_not_exists=fresh) from error
        if isinstance(answer, Metadata):
            return answer
        # The service compares too; an emulator may not, and a wrong blob must not pass.
        if answer.headers.get("content-md5", digest) != digest:
            raise IntegrityError(
                f"Azure holds other bytes for {self._location} than were sent",
                hint="The blob is there and is wrong: write it again, or delete it.",
            )
        return stat_made(self.client, self.path, answer, len(data))

    def _send_blocks(self, pieces: Iterator[bytes]) -> Metadata:
        staging = Staging(self.client, self.path, blocks.new_write())
        headers = self.headers()
        try:
            count, size = self._stage(staging, pieces)
            return staging.commit(count, size, headers)
        except CommitConflict as error:
            # The chunks are spent: they cannot be staged again.
            raise self._conflict_error(error) from error
        except BaseException as error:
            # Before the reason is looked for: an interrupt must leave nothing either.
            staging.discard_after(error)
            why = staging.explain_refusal(error) if isinstance(error, InvalidInput) else None
            if why is not None:
                raise why from error
            raise

    def _conflict_error(self, conflict: CommitConflict) -> Exception:
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
                            f"{self._location} is more than "
                            f"{blocks.LIMITS.most} blocks of {self._piece} bytes",
                            hint="Say how large it is (size_hint), so that blocks can be larger.",
                        )
                    # The oldest first: memory holds a piece for each request, and one more.
                    if len(pending) >= self.options.concurrent:
                        result_of(pending.popleft())
                    block = Block(staging.write, count)
                    pending.append(pool.submit(put_block, self.client, self.path, block, piece))
                while pending:
                    result_of(pending.popleft())
            finally:
                # After a failure: what waits is not sent, what is under way is waited for.
                for future in pending:
                    future.cancel()
        return count, size


def put_block(client: Client, path: str, block: Block, data: bytes) -> None:
    """Stage one block, with a checksum that the service compares."""
    digest = base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
    client.send(
        "write_part",
        path,
        "PUT",
        {"comp": "block", "blockid": block.id},
        headers={"Content-MD5": digest},
        body=data,
    )


def condition_headers(if_not_exists: bool, if_match: str | None) -> dict[str, str]:
    """The conditions on a target."""
    if if_not_exists:
        return {"If-None-Match": "*"}
    return {"If-Match": resource.quote_etag(if_match)} if if_match is not None else {}
