"""Frozen values without I/O, shared by every layer."""

from calque.values.backoff import Backoff
from calque.values.count_of import count_of
from calque.values.identity import ObjectIdentity, SourceIdentity
from calque.values.metadata import Checksum, Metadata
from calque.values.printable import printable
from calque.values.progress import Progress
from calque.values.ranges import GIB, KIB, MIB, ByteRange, PartLimits, PartPlan
from calque.values.size_text import size_text

__all__ = [
    "GIB",
    "KIB",
    "MIB",
    "Backoff",
    "ByteRange",
    "Checksum",
    "Metadata",
    "ObjectIdentity",
    "PartLimits",
    "PartPlan",
    "Progress",
    "SourceIdentity",
    "count_of",
    "printable",
    "size_text",
]
