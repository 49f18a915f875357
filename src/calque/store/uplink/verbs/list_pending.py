"""Uploads that are under way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.metainfo.timestamps import as_datetime
from calque.store.uplink.encryption.paths import EncryptedPath, NameCipher, child_key
from calque.store.uplink.kept_uploads import PendingInfo
from calque.store.uplink.session import Session


def list_pending(session: Session, bucket: str, prefix: str = "") -> Iterator[PendingInfo]:
    """Uploads that are not committed, below a prefix (empty or ending in ``/``), in no order."""
    path = session.access.below(bucket, prefix)
    names = _Names(path)
    cursor, version = b"", 0
    while True:
        page = session.metainfo.list_objects(
            pb.ObjectListRequest(
                header=session.header,
                bucket=bucket,
                encrypted_prefix=path.encrypted,
                encrypted_cursor=cursor,
                version_cursor=version,
                limit=session.settings.list_page,
                recursive=True,
                status=pb.STATUS_PENDING,
            )
        )
        for item in page.items:
            key = prefix + names.decrypt(item.encrypted_object_key)
            begun = as_datetime(item.object.created_at)
            yield PendingInfo(bucket, key, item.object.upload_id, begun)
        if not page.more:
            return
        cursor, version = page.items[-1].encrypted_object_key, page.items[-1].object.version


def sort_pending(
    session: Session, bucket: str, prefix: str = "", *, max_age: float = 0.0
) -> Sequence[PendingInfo]:
    """The same by key and then by their beginning; ``max_age``: seconds that it may be old.

    What is read is kept for that, within bounds: a page that follows another reads nothing.
    """
    kept = session.uploads.get(bucket, prefix, max_age) if max_age else None
    if kept is None:
        kept = sorted(
            list_pending(session, bucket, prefix),
            key=lambda each: (each.key.encode(), each.begun, each.upload_id),
        )
        session.uploads.keep(bucket, prefix, kept)
    return kept


class _Names:
    """Decrypts paths; neighbours lie in one folder, whose cipher is kept."""

    def __init__(self, path: EncryptedPath) -> None:
        self._base = path.key
        self._folder, self._plain = b"", ""
        self._cipher = NameCipher(path.key)

    def decrypt(self, encrypted: bytes) -> str:
        end = encrypted.rfind(b"/") + 1
        if encrypted[:end] != self._folder:
            self._enter(encrypted[:end])
        return self._plain + self._cipher.decrypt(encrypted[end:])

    def _enter(self, folder: bytes) -> None:
        key, plain = self._base, ""
        for component in folder.split(b"/")[:-1]:
            name = NameCipher(key).decrypt(component)
            key, plain = child_key(key, name), f"{plain}{name}/"
        self._folder, self._plain, self._cipher = folder, plain, NameCipher(key)
