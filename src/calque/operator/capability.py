"""What a service can do, declared and never guessed."""

from __future__ import annotations

from dataclasses import dataclass

from calque.values import MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """The verbs and conditions of a service. A behaviour test skips only by what stands here."""

    stat: bool = True
    read: bool = True
    write: bool = True
    delete: bool = True
    list: bool = True
    list_in_key_order: bool = True
    """Keys come in UTF-8 byte order, so that a merge join with the ledger is possible."""
    unfit_in_keys: str = ""
    """Characters that no key may hold there; a path with one is InvalidInput."""
    etags_are_md5: bool = False
    """An etag of 32 hexadecimal digits is the MD5 of the bytes, unless a key encrypts them."""
    checksums: frozenset[str] = frozenset()
    """Algorithms in which a listing or a stat may tell a checksum of the whole object."""
    step_of_times: float = 0.0
    """Seconds between two times that its listings can tell apart."""
    write_at_once_up_to: int = 8 * MIB
    """The largest object that is written by requests of the caller's thread alone."""
    write_with_if_not_exists: bool = False
    write_with_if_match: bool = False
    delete_with_if_match: bool = False
    read_with_if_match: bool = False
    read_tells_etag: bool = False
    """A reply names the etag of its bytes and the service compares it with a pin: pins of our own
    hold even where the server itself ignores the condition."""
    read_with_version: bool = False
    read_goes_on: bool = False
    """A read that is cut off goes on by itself, under one checksum: nobody else may ask for its
    rest, which no checksum would cover."""
    copy: bool = False
    """A copy inside the service, without bytes passing through the client."""
    copy_with_if_not_exists: bool = False
    copy_with_if_match: bool = False
    copy_source_pinned: bool = False
    copy_listed_up_to: int = 0
    """The largest object that is copied by what a listing says of it, without a stat before: the
    service pins it by the listed etag and carries metadata over by itself."""
    copy_concurrent: bool = False
    copy_resumable: bool = False
    copy_resumable_for: float | None = None
    """Seconds after which the service drops an unfinished copy; None: it keeps it."""
    user_metadata: bool = False
    """Content headers and user metadata are kept with the object."""
    tags: bool = False
    versions: bool = False
