"""How a segment becomes pieces: stripes, shares by Reed–Solomon, and a hash on every unit.

The encrypted bytes of a segment are cut into stripes of ``k × share_size`` bytes. A stripe gives
``n`` shares, any ``k`` of which give it back. A *unit* is a share as it lies in a piece: the share
and a hash over it that is bound to the piece and to the stripe's number, so that rot, truncation
and a unit in the wrong place are all found before the share is used. (Malice is another matter:
the bytes are authenticated by the client's cipher.)

With one piece (k = n = 1) the share is the stripe itself and no coding is done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import xxhash
from pyeclib.ec_iface import ECDriver, ECDriverError

from calque.errors import IntegrityError, InvalidInput
from calque.store.chunks import Buffer

HASH_SIZE = 16
DEFAULT_SHARE = 256 * 1024
_LARGEST_TOTAL = 32  # the limit of liberasurecode


@dataclass(frozen=True, slots=True, kw_only=True)
class Redundancy:
    """``required`` of ``total`` pieces give a segment; an upload is good with ``success``.

    ``repair``: with fewer healthy pieces than this the segment is to be repaired.
    """

    required: int = 1
    repair: int = 1
    success: int = 1
    total: int = 1
    share_size: int = DEFAULT_SHARE

    def __post_init__(self) -> None:
        if not 1 <= self.required <= self.repair <= self.success <= self.total <= _LARGEST_TOTAL:
            raise InvalidInput(
                "redundancy needs 1 ≤ required ≤ repair ≤ success ≤ total ≤ "
                f"{_LARGEST_TOTAL}, not {self.required}/{self.repair}/{self.success}/{self.total}"
            )
        if self.required == self.total and self.total > 1:
            raise InvalidInput(
                f"{self.required} of {self.total} pieces protect from nothing: "
                "use 1 of 1, or more pieces than are required"
            )
        if self.share_size < 1:
            raise InvalidInput(f"a share needs at least one byte, not {self.share_size}")

    @classmethod
    def of(cls, required: int, total: int, *, share_size: int = DEFAULT_SHARE) -> Redundancy:
        """The usual thresholds: repair halfway, success when one node of the spare ones is out."""
        spare = total - required
        return cls(
            required=required,
            repair=required + spare // 2,
            success=max(required + spare // 2, total - max(1, spare // 2)) if spare else total,
            total=total,
            share_size=share_size,
        )

    @property
    def stripe_size(self) -> int:
        return self.required * self.share_size

    @property
    def plain(self) -> bool:
        """One piece: no coding."""
        return self.total == 1


class Coder:
    """Encodes and decodes the stripes of one redundancy."""

    def __init__(self, redundancy: Redundancy) -> None:
        self.redundancy = redundancy
        self._driver = None if redundancy.plain else _driver(redundancy.required, redundancy.total)

    def unit_size(self, stripe_size: int) -> int:
        """Bytes that a stripe takes in each piece."""
        if self._driver is None:
            return stripe_size + HASH_SIZE
        info = self._driver.get_segment_info(stripe_size, stripe_size)
        return int(info["fragment_size"]) + HASH_SIZE

    def piece_size(self, encrypted_size: int) -> int:
        """Bytes of each piece of a segment."""
        full, rest = divmod(encrypted_size, self.redundancy.stripe_size)
        size = full * self.unit_size(self.redundancy.stripe_size) if full else 0
        return size + (self.unit_size(rest) if rest else 0)

    def encode(self, stripe: Buffer) -> list[Buffer]:
        """The shares of a stripe, by piece number."""
        if self._driver is None:
            return [stripe]
        shares: list[Buffer] = self._driver.encode(bytes(stripe))
        return shares

    def decode(self, shares: Mapping[int, Buffer], stripe_size: int) -> Buffer:
        """The stripe from any ``required`` shares."""
        if self._driver is None:
            return shares[0]
        try:
            stripe: bytes = self._driver.decode([bytes(share) for share in shares.values()])
        except ECDriverError as error:
            raise IntegrityError(
                f"the shares of pieces {sorted(shares)} do not belong together"
            ) from error
        if len(stripe) != stripe_size:
            raise IntegrityError(f"a stripe of {stripe_size} bytes decoded to {len(stripe)}")
        return stripe

    def rebuild(self, shares: Mapping[int, Buffer], missing: Sequence[int]) -> dict[int, Buffer]:
        """The ``missing`` shares of a stripe from any ``required`` others.

        The same bytes as :meth:`encode` gives, without the stripe and its other shares. One of
        ``missing`` may be among ``shares``: its node goes, and could still be read.
        """
        known = {number: shares[number] for number in missing if number in shares}
        wanted = sorted(set(missing) - set(known))
        if self._driver is None or not wanted:
            return known
        try:
            made: list[Buffer] = self._driver.reconstruct(
                [bytes(share) for share in shares.values()], [*wanted]
            )
        except ECDriverError as error:
            raise IntegrityError(
                f"the shares of pieces {sorted(shares)} do not belong together"
            ) from error
        return known | dict(zip(wanted, made, strict=True))


@lru_cache(maxsize=16)
def _driver(required: int, total: int) -> Any:
    return ECDriver(k=required, m=total - required, ec_type="isa_l_rs_cauchy")


def share_hash(piece_id: bytes, stripe: int, share: Buffer) -> bytes:
    """The hash kept beside a share: over its bytes, bound to piece and stripe."""
    seed = (int.from_bytes(piece_id[:8], "big") + stripe) & 0xFFFF_FFFF_FFFF_FFFF
    return xxhash.xxh3_128_digest(share, seed)


def open_unit(piece_id: bytes, stripe: int, unit: Buffer, size: int) -> Buffer:
    """The share in a unit of ``size`` bytes; IntegrityError when it is short or changed."""
    if len(unit) != size:
        raise IntegrityError(
            f"piece {piece_id.hex()} is truncated: stripe {stripe} has {len(unit)} of {size} bytes"
        )
    view = memoryview(unit)
    share, digest = view[:-HASH_SIZE], view[-HASH_SIZE:]
    if share_hash(piece_id, stripe, share) != digest:
        raise IntegrityError(
            f"piece {piece_id.hex()} is damaged: stripe {stripe} does not have its hash"
        )
    return share
