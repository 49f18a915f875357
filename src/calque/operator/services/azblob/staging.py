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
from calque.operator.services.azblob.client import Client
from calque.operator.services.azblob.errors import CODES, code_of, error_of
from calque.operator.services.azblob.resource import BlockList
from calque.operator.services.azblob.stat import exists, head, stat_made
from calque.operator.services.conditional import condition_error, send_marked
from calque.values import Metadata

_LONG_AGO = "Thu, 01 Jan 1970 00:00:00 GMT"
"""Before any blob: "unmodified since then" is false as soon as there is one."""


@dataclass(frozen=True, slots=True)
class Staging:
    """The blocks of one write to one blob."""

    client: Client
    path: str
    write: str

    @property
    def _location(self) -> str:
        return self.client.location(self.path)

    def list_staged(self) -> dict[int, Part]:
        """Our blocks that the service holds uncommitted, by number."""
        return _own_parts(get_block_list(self.client, self.path).uncommitted, self.write)

    def explain_refusal(self, refused: CalqueError) -> ConditionNotMatch | None:
        """Why a block was refused, where blocks of another writer are the reason.

        All ids of a blob's uncommitted blocks must be equally long, and ours have one length.
        """
        if not isinstance(refused, InvalidInput):
            return None
        ours = len(Block(self.write, 1).id)
        held = get_block_list(self.client, self.path).uncommitted
        if all(len(id) == ours for id, _ in held):
            return None
        return ConditionNotMatch(
            f"{self._location} has uncommitted blocks of another writer, whose "
            "ids are of another length than calque's",
            hint="Let the other writer commit, or wait: the service drops them within a week.",
        )

    def commit(self, count: int, size: int, headers: Mapping[str, str]) -> Metadata:
        """Make the blocks 1 to ``count``, ``size`` bytes, the blob, under its conditions.

        A repeat after a lost answer finds the blob made of its own blocks and is a success.
        """
        body = resource.block_list_body([Block(self.write, each + 1).id for each in range(count)])
        link, key, where = self.client.link, self.client.key(self.path), self._location

        def request(call: Call) -> Answer:
            answer = link.exchange(
                call, "PUT", key, {"comp": "blocklist"}, headers=headers, body=body
            )
            if answer.status == 201:
                return answer
            if code_of(answer) in ("InvalidBlockList", "InvalidBlobOrBlock"):
                # Another write to the blob has thrown the staged blocks away.
                raise CommitConflict(f"{where} was written meanwhile")
            if answer.status in (409, 412) and CODES.get(code_of(answer)) is ConditionNotMatch:
                fresh = headers.get("If-None-Match") == "*"
                raise condition_error(where, if_not_exists=fresh)
            raise error_of(answer, where, "commit")

        answer = send_marked(
            self.client.chain,
            "commit",
            self.path,
            request,
            lambda: self.find_committed(count),
            failures=(CalqueError, CommitConflict),
            slow=True,
        )
        if isinstance(answer, Metadata):
            return answer
        return _drop_checksum(stat_made(self.client, self.path, answer, size))

    def find_committed(self, count: int | None = None) -> Metadata | None:
        """The blob, if it is made of exactly this write's blocks."""
        held = get_block_list(self.client, self.path).committed
        ours = _own_parts(held, self.write)
        # Every block must be ours: another writer may have committed some of them among its own.
        if not held or len(ours) != len(held) or count not in (None, len(held)):
            return None
        return _drop_checksum(resource.metadata_of(self.path, head(self.client, self.path)))

    def discard(self) -> None:
        """Drop what is staged where that touches nothing else.

        Deleting is the only way, and it takes the blob and everybody's blocks with it. So it is
        done only where there is no blob and every block is ours; and it is conditional, so that a
        blob which appears meanwhile survives. What stays, the service collects within a week.
        """
        held = get_block_list(self.client, self.path).uncommitted
        ours = _own_parts(held, self.write)
        if not ours or len(ours) != len(held) or exists(self.client, self.path):
            return
        headers = {"If-Unmodified-Since": _LONG_AGO}
        try:
            self.client.send("abort", self.path, "DELETE", headers=headers)
        # Gone already, or a blob has appeared: in both cases nothing of ours is left to drop.
        except (NotFound, ConditionNotMatch):
            return

    def discard_after(self, cause: BaseException) -> None:
        """Discard, and note on the cause what could not be."""
        try:
            self.discard()
        except CalqueError as error:
            cause.add_note(f"uncommitted blocks of {self._location} were left: {error}")


def _own_parts(held: tuple[tuple[str, int], ...], write: str) -> dict[int, Part]:
    found = {}
    for id, size in held:
        block = Block.read(id)
        if block is not None and block.write == write:
            found[block.number] = Part(block.number, id, size)
    return found


def _drop_checksum(found: Metadata) -> Metadata:
    """A committed blob's MD5 was given by us and not computed there: it proves nothing."""
    return replace(found, checksum=None)


def get_block_list(client: Client, path: str) -> BlockList:
    """All blocks of a blob, staged and committed; none where there is no blob."""
    query = {"comp": "blocklist", "blocklisttype": "all"}
    try:
        answer = client.send("list_parts", path, "GET", query)
    except NotFound:
        return BlockList()
    return resource.block_list_of(answer.body)
