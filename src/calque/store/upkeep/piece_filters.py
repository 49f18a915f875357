"""Observers that see pieces: how many each node has, and the filter of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from calque.errors import IntegrityError
from calque.store.metabase.model.packed_pieces import unpack
from calque.store.metabase.model.records import ROOT_PIECE_ID_SIZE
from calque.store.metabase.scan import Snapshot
from calque.store.nodes.bloom import WORDS_SIZE, BloomFilter, BloomShape, words_of
from calque.store.nodes.pieces import piece_digests
from calque.store.upkeep.scan import Batch


@dataclass
class PieceCounts:
    """How many pieces each node has, by its alias."""

    columns: tuple[str, ...] = ("remote_alias_pieces",)
    pieces: Counter[int] = field(default_factory=Counter)

    def start(self, snapshot: Snapshot) -> None:
        """Nothing to prepare."""

    def fork(self) -> _CountFork:
        return _CountFork()

    def join(self, result: Mapping[int, int]) -> None:
        self.pieces.update(result)

    def finish(self) -> None:
        """The counts are in ``pieces``."""


class _CountFork:
    def __init__(self) -> None:
        self._pieces: Counter[int] = Counter()

    def process(self, batch: Batch) -> None:
        for packed in batch["remote_alias_pieces"]:
            if packed is not None:
                self._pieces.update(alias for _, alias in unpack(packed))

    def result(self) -> Counter[int]:
        return self._pieces


@dataclass
class PieceFilters:
    """A filter for each node, of every piece that a segment names.

    There is one of each, here: a range gives the words of its pieces, so what travels, and what a
    task holds, grows with the rows of a range and not with those of the store. A row whose pieces
    cannot be read, or that names an unknown node, fails the scan: nobody could say what must stay.
    """

    nodes: Mapping[int, bytes]
    """The id of each node, by its alias."""
    shapes: Mapping[int, BloomShape]
    columns: tuple[str, ...] = ("root_piece_id", "remote_alias_pieces")
    filters: dict[int, BloomFilter] = field(default_factory=dict)
    pieces: Counter[int] = field(default_factory=Counter)

    def start(self, snapshot: Snapshot) -> None:
        self.filters = {alias: BloomFilter(shape) for alias, shape in self.shapes.items()}
        self.pieces = Counter()

    def fork(self) -> _FilterFork:
        return _FilterFork(self.nodes)

    def join(self, result: Mapping[int, bytearray]) -> None:
        for alias, words in result.items():
            self.filters[alias].add(words)
            self.pieces[alias] += len(words) // WORDS_SIZE

    def finish(self) -> None:
        """The filters are complete."""

    def __getstate__(self) -> dict[str, object]:
        # To a task goes what it needs, not what other ranges have found.
        return {**self.__dict__, "filters": {}, "pieces": Counter()}


class _FilterFork:
    def __init__(self, nodes: Mapping[int, bytes]) -> None:
        self._nodes = nodes
        self._words: dict[int, bytearray] = {}

    def process(self, batch: Batch) -> None:
        nodes = self._nodes
        found: dict[int, list[bytes]] = {alias: [] for alias in nodes}
        for root, packed in zip(batch["root_piece_id"], batch["remote_alias_pieces"], strict=True):
            if packed is None:
                continue
            placed = unpack(packed)
            if len(root) != ROOT_PIECE_ID_SIZE:
                raise IntegrityError(
                    "a segment has a damaged root piece id", hint="See `calque store fsck`."
                )
            try:
                digests = piece_digests(root, [(number, nodes[alias]) for number, alias in placed])
                for (_, alias), digest in zip(placed, digests, strict=True):
                    found[alias].append(digest)
            except KeyError as error:
                raise IntegrityError(
                    f"a segment names node alias {error.args[0]}, which nobody has",
                    hint="See `calque store fsck`.",
                ) from error
        for alias, some in found.items():
            if some:
                # Of 31 bytes a filter needs 16, and an object of its own would take 64.
                self._words.setdefault(alias, bytearray()).extend(words_of(b"".join(some)))

    def result(self) -> dict[int, bytearray]:
        """The words of every piece, by the alias of its node."""
        return self._words
