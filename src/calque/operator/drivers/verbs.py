"""The verbs a service supplies to each driver; every method is one request through the layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from calque.values import ByteRange, Metadata


@dataclass(frozen=True, slots=True)
class Part:
    """A part (or block) that the server holds: its number from 1, its tag, its size."""

    number: int
    etag: str
    size: int
    checksum: str | None = None
    crc: str | None = None
    """Of the bytes as this client has read them: the kind that their source tells, ``:``, value."""


class CommitConflict(Exception):
    """Another write raced with this commit and the upload is of no more use (409 of S3's Complete).

    The condition on the target may still hold, so the driver copies every part again in a new
    upload, within a bound. It is no CalqueError, so that no layer repeats the commit itself.
    """


class OneShotVerbs(Protocol):
    """A copy in one request."""

    def copy_once(self) -> Metadata:
        """The target's metadata, its size and checksum as the server tells them."""


class MultipartVerbs(Protocol):
    """S3: a multipart upload filled by range copies."""

    def initiate(self) -> str:
        """Open the upload and return its id."""

    def copy_part(self, upload: str, number: int, span: ByteRange) -> Part: ...

    def list_parts(self, upload: str) -> Mapping[int, Part]:
        """What the server holds; NotFound when the upload is gone."""

    def complete(self, upload: str, parts: Sequence[Part]) -> Metadata:
        """Commit the parts in order, under the target's conditions.

        Returns the target's metadata, its size as the server tells it. Raises CommitConflict where
        only a new upload can succeed.
        """

    def find_committed(self, upload: str, parts: Sequence[Part]) -> Metadata | None:
        """The target, if it was surely made by this upload, which the server no longer knows.

        ``parts`` are those the checkpoint or the driver knew of (perhaps not all). None when the
        target is missing or may be another's: the caller then treats the upload as aborted.
        """

    def abort(self, upload: str) -> None:
        """Drop the upload and everything it holds; one that is gone is no error."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """One reply of a rewrite: the token while unfinished, the metadata when done."""

    copied: int
    total: int
    token: str | None
    metadata: Metadata | None


class RewriteVerbs(Protocol):
    """GCS: one call after another with the token of the last."""

    def rewrite(self, token: str | None) -> Rewritten:
        """One call: without a token the first, else the next, with the same parameters as ever.

        ``copied`` counts from the start of the copy, not of the call.
        """

    def find_committed(self) -> Metadata | None:
        """The target, if it was surely made by this copy; else None."""


class BlockVerbs(Protocol):
    """Azure: blocks staged from a source range, then one commit of the list."""

    def stage(self, number: int, span: ByteRange) -> Part: ...

    def list_staged(self) -> Mapping[int, Part]:
        """The blocks of this copy that the server holds uncommitted."""

    def commit(self, parts: Sequence[Part]) -> Metadata:
        """Commit the blocks in order, under the target's conditions, with headers and metadata."""

    def find_committed(self, parts: Sequence[Part]) -> Metadata | None:
        """The target, if it was surely made of this copy's blocks; else None."""

    def discard(self) -> None:
        """Drop what was staged, never touching a blob that existed before.

        What cannot be dropped without touching that blob is left to the service's collection.
        """
