"""One stripe of a segment, asked of every node that has a piece: who answers right?

A unit has a hash, which rot and truncation do not survive. A node that lies can make a right hash;
it is found through the code: what ``required`` shares give must give back all the others. Where
more shares contradict each other than the code can tell apart, nobody is blamed.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations, islice
from typing import Literal

from calque.errors import CalqueError, IntegrityError, NotFound
from calque.store.chunks import Buffer
from calque.store.nodes.erasure import Coder
from calque.store.nodes.liveness import ANSWER_WITHIN
from calque.store.nodes.node import Node
from calque.store.nodes.pieces import piece_id
from calque.store.nodes.units import Stripes, shares_of

Answer = Literal["good", "wrong", "silent"]

_TRIES = 500
"""Sets of shares that are tried to find who lies."""


def ask_for_share(
    node: Node, root_piece_id: bytes, number: int, stripes: Stripes
) -> tuple[Answer, Buffer | None]:
    """A node's share of one stripe: wrong when its hash is, or when the piece is not there."""
    piece = piece_id(root_piece_id, node.id, number)
    offset, length = stripes.piece_range

    def read() -> Buffer:
        # A root that is not this node's would have no piece either: that is silence, not a lie.
        node.identity.require()
        (share,) = shares_of(piece, node.read(piece, offset, length), stripes)
        return share

    try:
        return "good", node.liveness.run_within(ANSWER_WITHIN, read)
    except (IntegrityError, NotFound):
        return "wrong", None
    except CalqueError:
        return "silent", None


def find_liars(coder: Coder, shares: Mapping[int, Buffer], stripe_size: int) -> set[int]:
    """Numbers of pieces whose share does not fit to the others; empty where nobody can tell."""
    required = coder.redundancy.required
    if coder.redundancy.plain or len(shares) <= required:
        return set()
    best: set[int] = set()
    for chosen in islice(combinations(sorted(shares), required), _TRIES):
        agreeing = _agreeing(coder, shares, chosen, stripe_size)
        if len(agreeing) == len(shares):
            return set()
        best = max(best, agreeing, key=len)
    # Half of the spare shares is what a code can correct: with more, another set of honest nodes
    # would explain the answers as well.
    liars = set(shares) - best
    return liars if len(liars) <= (len(shares) - required) // 2 else set()


def _agreeing(
    coder: Coder, shares: Mapping[int, Buffer], chosen: tuple[int, ...], stripe_size: int
) -> set[int]:
    try:
        stripe = coder.decode({number: shares[number] for number in chosen}, stripe_size)
    except IntegrityError:
        return set()
    made = coder.encode(stripe)
    return {number for number, share in shares.items() if bytes(made[number]) == bytes(share)}
