"""The content type of a file by its name; one that is not known stays unset."""

from __future__ import annotations

import mimetypes
from functools import lru_cache

_PACKED = {
    "gzip": "application/gzip",
    "bzip2": "application/x-bzip2",
    "xz": "application/x-xz",
    "compress": "application/x-compress",
    "br": "application/x-brotli",
}


@lru_cache(maxsize=1)
def _types() -> mimetypes.MimeTypes:
    """The table that comes with Python; not the machine's own, so that all give the same."""
    return mimetypes.MimeTypes()


def guess_type(path: str) -> str | None:
    """``text/csv`` for ``a.csv``; of ``a.csv.gz`` the packing, since that is what the bytes are."""
    kind, packing = _types().guess_type(path.rpartition("/")[2], strict=True)
    return _PACKED.get(packing) if packing else kind
