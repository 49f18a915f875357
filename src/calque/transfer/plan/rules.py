"""Which objects differ: the first rule that can tell decides, and the report says which it was.

The order is size, checksum, identity (we copied it ourselves), time. A rule that is not sure says
nothing: an ETag of parts that is another proves nothing, and neither do checksums of two kinds.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from datetime import datetime

from calque.errors import Unsupported
from calque.operator.capability import Capability
from calque.operator.http.digest import ALGORITHMS, start_hash
from calque.operator.read import pinned_options, read_on
from calque.operator.service import Service
from calque.transfer.model import Decision, Pair, Rule, Step
from calque.transfer.plan.copied_before import Remembered
from calque.transfer.plan.side import Side
from calque.transfer.request.options import Compare
from calque.values import ByteRange, Metadata

_MD5 = re.compile(r"[0-9a-f]{32}")
_PARTS = re.compile(r"[0-9a-f]{32}-\d+")

Said = tuple[Step, Rule] | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """How a pair is decided; it looks at listings alone unless ``checksum`` was asked for."""

    mode: Compare
    source: Side
    target: Side
    remembered: Remembered | None = None
    download: bool = False
    """Whether bytes of both are read, where no checksum that is told is common to both."""

    def decide(self, pair: Pair) -> Decision:
        """What is to be done with a path that the source has."""
        if pair.target is None:
            return Decision(pair, "copy", "new")
        step, rule = self._compare(pair.path, _both(pair))
        return Decision(pair, step, rule)

    def _compare(self, path: str, both: tuple[Metadata, Metadata]) -> tuple[Step, Rule]:
        source, target = both
        if self.mode == "always":
            return "copy", "always"
        if self.mode == "never":
            return "keep", "never"
        if source.size != target.size:
            return "copy", "size"
        if self.mode == "size":
            return "keep", "size"
        if self.mode == "time":
            return self._by_time(source, target)
        if self.mode == "checksum":
            return self._by_digest(source, target)
        said = self._by_checksum(source, target)
        if said is None or said[0] == "copy":
            # Before an ETag is believed that differs: encrypted targets have some that are no MD5.
            known = self._by_identity(path, source, target)
            said = known if said is None or (known and known[0] == "keep") else said
        return said or self._by_time(source, target)

    def _by_checksum(self, source: Metadata, target: Metadata) -> Said:
        if source.etag and source.etag == target.etag and _PARTS.fullmatch(source.etag):
            return "keep", "checksum"
        ours = checksums(self.source.service.capability, source)
        theirs = checksums(self.target.service.capability, target)
        for algorithm in ours.keys() & theirs.keys():
            return ("keep" if ours[algorithm] == theirs[algorithm] else "copy"), "checksum"
        return None

    def _by_identity(self, path: str, source: Metadata, target: Metadata) -> Said:
        if self.remembered is None:
            return None
        verdict = self.remembered.verdict(path, source, target)
        if verdict == "unknown":
            return None
        return ("keep" if verdict == "same" else "copy"), "identity"

    def _by_time(self, source: Metadata, target: Metadata) -> tuple[Step, Rule]:
        step = max(side.service.capability.step_of_times for side in (self.source, self.target))
        ours, theirs = _floor(source.last_modified, step), _floor(target.last_modified, step)
        if ours is None or theirs is None or ours > theirs:
            return "copy", "time"
        return "keep", "time"

    def _by_digest(self, source: Metadata, target: Metadata) -> tuple[Step, Rule]:
        """By checksums, wherever they come from: the listing, a look, the bytes of a file."""
        sides = ((self.source.service, source), (self.target.service, target))
        ours, theirs = (dict(checksums(service.capability, entry)) for service, entry in sides)
        for look in (_look, _read):
            common = ours.keys() & theirs.keys()
            if common:
                break
            for known, other, (service, entry) in zip(
                (ours, theirs), (theirs, ours), sides, strict=True
            ):
                if look is _look or service.scheme == "fs" or self.download:
                    known.update(look(service, entry, other))
        for algorithm in sorted(ours.keys() & theirs.keys()):
            return ("keep" if ours[algorithm] == theirs[algorithm] else "copy"), "checksum"
        raise Unsupported(
            f"{self.source.location()} and {self.target.location()} keep no checksum in common "
            f"for {source.path!r}",
            hint="Compare by size or time, or read both with --download.",
        )


def refuse_incomparable(source: Side, target: Side) -> None:
    """Raise Unsupported where no object of one can have a checksum in common with the other's."""
    ours, theirs = _possible(source), _possible(target)
    if ours.isdisjoint(theirs):
        said = (
            f"{side.location()} tells {', '.join(sorted(known)) or 'none'}"
            for side, known in ((source, ours), (target, theirs))
        )
        raise Unsupported(
            f"the two sides can have no checksum in common: {', '.join(said)}",
            hint="Nothing was done. Compare by size or time, or read both with --download.",
        )


def _possible(side: Side) -> frozenset[str]:
    return ALGORITHMS if side.is_local else side.service.capability.checksums


def checksums(can: Capability, entry: Metadata) -> Mapping[str, str]:
    """The checksums of the whole object that an entry tells, by algorithm, in base64."""
    known = {} if entry.checksum is None else {entry.checksum.algorithm: entry.checksum.value}
    if can.etags_are_md5 and entry.etag and _MD5.fullmatch(entry.etag):
        known["md5"] = base64.b64encode(bytes.fromhex(entry.etag)).decode()
    return known


def _look(service: Service, entry: Metadata, wanted: Mapping[str, str]) -> Mapping[str, str]:
    """What a stat tells besides; files have nothing to tell."""
    return {} if service.scheme == "fs" else checksums(service.capability, service.stat(entry.path))


def _read(service: Service, entry: Metadata, wanted: Mapping[str, str]) -> Mapping[str, str]:
    return hash_object(service, entry, wanted)


def hash_object(service: Service, entry: Metadata, wanted: Container[str]) -> Mapping[str, str]:
    """The checksum of an object's bytes, of a kind that the other side has."""
    name = next((each for each in sorted(ALGORITHMS) if each in wanted), "md5")
    digest = start_hash(name)
    for piece in read_on(service, entry.path, pinned_options(service, entry, ByteRange())):
        digest.update(piece)
    return {name: base64.b64encode(digest.digest()).decode()}


def _both(pair: Pair) -> tuple[Metadata, Metadata]:
    assert pair.source is not None
    assert pair.target is not None
    return pair.source, pair.target


def _floor(moment: datetime | None, step: float) -> float | None:
    """A time at the coarser side's step, so that what was rounded never looks older or newer."""
    if moment is None:
        return None
    seconds = moment.timestamp()
    return seconds if step == 0 else seconds // step
