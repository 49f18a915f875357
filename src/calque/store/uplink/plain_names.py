"""Plain names in messages: the satellite knows none, so the client puts them in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from calque.errors import NotFound
from calque.store.uplink.encryption.access import Located


@contextmanager
def name_missing_object(located: Located) -> Iterator[None]:
    """A missing object is called by its plain name; a missing bucket is named already."""
    try:
        yield
    except NotFound as error:
        if "object does not exist" not in error.message:
            raise
        raise NotFound(
            f"there is no object {located.key!r} in bucket {located.bucket!r}"
        ) from error
