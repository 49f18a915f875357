"""What a copy carries over from its source besides the bytes."""

from __future__ import annotations

from dataclasses import replace

from calque.operator.options import CopyOptions
from calque.values import Metadata


def metadata_to_carry(source: Metadata, options: CopyOptions) -> Metadata:
    """The source's metadata as far as the options carry it; tags are the service's own affair."""
    carried = source if options.carry_metadata else Metadata(path=source.path)
    return replace(carried, storage_class=source.storage_class if options.carry_class else None)
