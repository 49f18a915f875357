"""A project: buckets and objects, as an application uses them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from types import TracebackType
from typing import Self

from calque.store.chunks import Data
from calque.store.embedded import EmbeddedStore
from calque.store.uplink import buckets as bucket_verbs
from calque.store.uplink.buckets import BucketInfo
from calque.store.uplink.copy_object import Copy, copy_object, prepare_copy
from calque.store.uplink.delete_object import delete_object
from calque.store.uplink.download import Download, download_object
from calque.store.uplink.grant import AccessGrant
from calque.store.uplink.list_objects import list_objects
from calque.store.uplink.move_object import move_object
from calque.store.uplink.multipart import (
    MultipartUpload,
    PendingInfo,
    begin_multipart,
    list_pending,
    resume_multipart,
)
from calque.store.uplink.objects import ObjectInfo, PrefixInfo
from calque.store.uplink.rewrap import Conditions
from calque.store.uplink.session import Session
from calque.store.uplink.stat_object import stat_object, update_metadata
from calque.store.uplink.upload import upload_object
from calque.values.metadata import EMPTY


class Project:
    """One project through one access. Safe to share between threads; close it when done."""

    def __init__(self, session: Session, grant: AccessGrant, *, owns: EmbeddedStore | None = None):
        self._session = session
        self._grant = grant
        self._owns = owns

    @property
    def session(self) -> Session:
        """What the verbs below this class need."""
        return self._session

    @property
    def access(self) -> AccessGrant:
        """The grant this project was opened with: serialise it, or restrict it for others."""
        return self._grant

    # ---- buckets

    def create_bucket(self, name: str, *, placement: int = 0, exist_ok: bool = False) -> BucketInfo:
        """Make a bucket; AlreadyExists when there is one, unless ``exist_ok``."""
        return bucket_verbs.create_bucket(
            self._session, name, placement=placement, exist_ok=exist_ok
        )

    def stat_bucket(self, name: str) -> BucketInfo:
        """One bucket; NotFound when there is none."""
        return bucket_verbs.stat_bucket(self._session, name)

    def delete_bucket(self, name: str, *, with_objects: bool = False) -> int:
        """Delete a bucket, empty or ``with_objects``; how many objects went with it."""
        return bucket_verbs.delete_bucket(self._session, name, with_objects=with_objects)

    def list_buckets(self) -> Iterator[BucketInfo]:
        """The buckets that this access may see, by name."""
        return bucket_verbs.list_buckets(self._session)

    # ---- objects

    def upload(
        self,
        bucket: str,
        key: str,
        data: Data,
        *,
        metadata: Mapping[str, str] = EMPTY,
        expires: datetime | None = None,
        if_not_exists: bool = False,
        if_match: str | None = None,
    ) -> ObjectInfo:
        """Store bytes, chunks or an open file as an object; see :func:`upload_object`."""
        return upload_object(
            self._session,
            bucket,
            key,
            data,
            metadata=metadata,
            expires=expires,
            if_not_exists=if_not_exists,
            if_match=if_match,
        )

    def download(
        self,
        bucket: str,
        key: str,
        *,
        offset: int = 0,
        length: int | None = None,
        if_match: str | None = None,
    ) -> Download:
        """Begin to read an object: iterate over it for chunks, or ``.read()`` it whole."""
        return download_object(
            self._session, bucket, key, offset=offset, length=length, if_match=if_match
        )

    def stat(self, bucket: str, key: str) -> ObjectInfo:
        """The object with its metadata; NotFound when there is none."""
        return stat_object(self._session, bucket, key)

    def list_objects(
        self,
        bucket: str,
        prefix: str = "",
        *,
        start_after: str = "",
        recursive: bool = True,
        with_metadata: bool = False,
    ) -> Iterator[ObjectInfo | PrefixInfo]:
        """Objects whose key starts with a prefix, in the byte order of keys."""
        return list_objects(
            self._session,
            bucket,
            prefix,
            start_after=start_after,
            recursive=recursive,
            with_metadata=with_metadata,
        )

    def update_metadata(
        self, bucket: str, key: str, metadata: Mapping[str, str], *, if_match: str | None = None
    ) -> ObjectInfo:
        """Replace the metadata of an object; its bytes are untouched."""
        return update_metadata(self._session, bucket, key, metadata, if_match=if_match)

    def delete_object(self, bucket: str, key: str, *, if_match: str | None = None) -> bool:
        """Delete an object; whether there was one. Copies of it stay whole."""
        return delete_object(self._session, bucket, key, if_match=if_match)

    def copy_object(
        self,
        old_bucket: str,
        old_key: str,
        new_bucket: str,
        new_key: str,
        *,
        metadata: Mapping[str, str] | None = None,
        if_not_exists: bool = False,
        if_match: str | None = None,
        source_if_match: str | None = None,
        source_if_unmodified_since: datetime | None = None,
    ) -> ObjectInfo:
        """Copy an object in one metadata transaction; see :func:`copy_object`."""
        return copy_object(
            self._session,
            old_bucket,
            old_key,
            new_bucket,
            new_key,
            metadata=metadata,
            if_not_exists=if_not_exists,
            if_match=if_match,
            source_if_match=source_if_match,
            source_if_unmodified_since=source_if_unmodified_since,
        )

    def prepare_copy(
        self,
        old_bucket: str,
        old_key: str,
        new_bucket: str,
        new_key: str,
        *,
        metadata: Mapping[str, str] | None = None,
        conditions: Conditions | None = None,
    ) -> Copy:
        """A copy that the caller drives page by page and may resume in another process."""
        return prepare_copy(
            self._session,
            old_bucket,
            old_key,
            new_bucket,
            new_key,
            metadata=metadata,
            conditions=conditions or Conditions(),
        )

    def move_object(
        self,
        old_bucket: str,
        old_key: str,
        new_bucket: str,
        new_key: str,
        *,
        if_not_exists: bool = False,
        if_match: str | None = None,
        source_if_match: str | None = None,
    ) -> ObjectInfo:
        """Move an object in one metadata transaction; see :func:`move_object`."""
        return move_object(
            self._session,
            old_bucket,
            old_key,
            new_bucket,
            new_key,
            if_not_exists=if_not_exists,
            if_match=if_match,
            source_if_match=source_if_match,
        )

    # ---- uploads in parts

    def begin_multipart(
        self,
        bucket: str,
        key: str,
        *,
        metadata: Mapping[str, str] = EMPTY,
        expires: datetime | None = None,
    ) -> MultipartUpload:
        """Begin an upload in parts; nothing is visible until it is committed."""
        return begin_multipart(self._session, bucket, key, metadata=metadata, expires=expires)

    def resume_multipart(self, bucket: str, key: str, upload_id: bytes) -> MultipartUpload:
        """Go on with an upload that was begun elsewhere."""
        return resume_multipart(self._session, bucket, key, upload_id)

    def list_pending(self, bucket: str, prefix: str = "") -> Iterator[PendingInfo]:
        """Uploads that are not committed, in no order."""
        return list_pending(self._session, bucket, prefix)

    # ---- the end

    def close(self) -> None:
        """Let go of the satellite and the nodes; of the embedded store too, if it was opened."""
        self._session.close()
        if self._owns is not None:
            self._owns.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Project({self._grant.address!r})"
