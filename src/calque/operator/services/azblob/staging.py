"""What is staged of a write: found, committed, discarded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from calque.errors import CalqueError, ConditionNotMatch, InvalidInput, NotFound
from calque.operator.drivers.verbs import CommitConflict, Part
from calque.operator.http.exchange import Answer
from calque.operator.layers.chain import Call
from calque.operator.services.azblob import resource
from calque.operator.services.azblob.blocks import Block
from calque.operator.services.azblob.errors import CODES, code_of, not_met, refusal
from calque.operator.services.azblob.requests import Requests
from calque.values import Metadata

_LONG_AGO = "Thu, 01 Jan 1970 00:00:00 GMT"


@dataclass(frozen=True, slots=True)
class Staging:
    """The blocks of one write to one blob."""

    requests: Requests
    path: str
    write: str

    def staged(self) -> dict[int, Part]:
        """Our blocks that the service holds uncommitted, by number."""
        return _ours(self.requests.block_list(self.path).uncommitted, self.write)

    def in_the_way(self, refused: CalqueError) -> ConditionNotMatch | None:
        """Why a block was refused, where blocks of another writer are the reason.

        All ids of a blob's uncommitted blocks must be equally long, and ours have one length.
        """
        if not isinstance(refused, InvalidInput):
            return None
        ours = len(Block(self.write, 1).id)
        held = self.requests.block_list(self.path).uncommitted
        if all(len(id) == ours for id, _ in held):
            return None
        return ConditionNotMatch(
            f"{self.requests.location(self.path)} has uncommitted blocks of another writer, whose "
            "ids are of another length than calque's",
            hint="Let the other writer commit, or wait: the service drops them within a week.",
        )

    def commit(self, count: int, size: int, headers: Mapping[str, str]) -> Metadata:
        """Make the blocks 1 to ``count``, ``size`` bytes, the blob, under its conditions.

        A repeat after a lost answer finds the blob made of its own blocks and is a success.
        """
        body = resource.latest([Block(self.write, each + 1).id for each in range(count)])
        client, key, attempts = self.requests.client, self.requests.key(self.path), 0

        def request(call: Call) -> Answer:
            nonlocal attempts
            attempts += 1
            answer = client.exchange(
                call, "PUT", key, {"comp": "blocklist"}, headers=headers, body=body
            )
            if answer.status == 201:
                return answer
            if code_of(answer) in ("InvalidBlockList", "InvalidBlobOrBlock"):
                # Another write to the blob has thrown the staged blocks away.
                raise CommitConflict(f"{self.requests.location(self.path)} was written meanwhile")
            if answer.status in (409, 412) and CODES.get(code_of(answer)) is ConditionNotMatch:
                fresh = headers.get("If-None-Match") == "*"
                raise not_met(self.requests.location(self.path), if_not_exists=fresh)
            raise refusal(answer, self.requests.location(self.path), "commit")

        try:
            answer = self.requests.chain.send("commit", self.path, request, slow=True)
        except (CalqueError, CommitConflict):
            # The answer of an earlier attempt may have been lost after it had made the blob.
            made = self.committed(count) if attempts > 1 else None
            if made is None:
                raise
            return made
        return self._described(self.requests.made(self.path, answer, size))

    def _described(self, found: Metadata) -> Metadata:
        # The blob's MD5 was given by us and not computed: it proves nothing here.
        return replace(found, checksum=None)

    def committed(self, count: int | None = None) -> Metadata | None:
        """The blob, if it is made of exactly this write's blocks."""
        held = self.requests.block_list(self.path).committed
        ours = _ours(held, self.write)
        if not held or len(ours) != len(held) or count not in (None, len(held)):
            return None
        return self._described(resource.metadata_of(self.path, self.requests.head(self.path)))

    def discard(self) -> None:
        """Drop what is staged where that touches nothing else.

        Deleting is the only way, and it takes the blob and everybody's blocks with it. So it is
        done only where there is no blob and every block is ours; and it is conditional, so that a
        blob which appears meanwhile survives. What stays, the service collects within a week.
        """
        held = self.requests.block_list(self.path).uncommitted
        ours = _ours(held, self.write)
        if not ours or len(ours) != len(held) or self.requests.exists(self.path):
            return
        headers = {"If-Unmodified-Since": _LONG_AGO}
        try:
            self.requests.about("abort", self.path, "DELETE", headers=headers)
        except (NotFound, ConditionNotMatch):
            return

    def discard_after(self, cause: BaseException) -> None:
        """Discard, and note on the cause what could not be."""
        try:
            self.discard()
        except CalqueError as error:
            cause.add_note(
                f"uncommitted blocks of {self.requests.location(self.path)} were left: {error}"
            )


def _ours(held: tuple[tuple[str, int], ...], write: str) -> dict[int, Part]:
    found = {}
    for id, size in held:
        block = Block.read(id)
        if block is not None and block.write == write:
            found[block.number] = Part(block.number, id, size)
    return found
