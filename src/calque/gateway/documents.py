"""What a bucket was told as a whole: rules for browsers, rules of expiry."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from calque.errors import PermissionDenied
from calque.store.metabase.accounts import bucket_documents as rows
from calque.store.metabase.engine.database import Database
from calque.store.metainfo import Action
from calque.store.project import Project

TRUST = 1.0
"""Seconds that a document is believed."""
REMEMBERED = 4096
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class BucketDocuments:
    """Documents of buckets, by their kind; a key that reaches the whole bucket may change them."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[tuple[bytes, str, str], tuple[bytes | None, float]] = {}

    def get(self, project: Project, bucket: str, kind: str) -> bytes | None:
        """The document, or None; NotFound without the bucket."""
        project.stat_bucket(bucket)
        return rows.get_document(self._database, project.session.limits.project_id, bucket, kind)

    def find(self, project_id: bytes, bucket: str, kind: str) -> bytes | None:
        """The document as it was within the last second: every write asks, and few ever change."""
        known, now = self._known.get((project_id, bucket, kind)), time.monotonic()
        if known is not None and now - known[1] < TRUST:
            return known[0]
        document = rows.get_document(self._database, project_id, bucket, kind)
        if len(self._known) >= REMEMBERED:
            self._known = {}
        self._known[project_id, bucket, kind] = (document, now)
        return document

    def put(self, project: Project, bucket: str, kind: str, document: bytes) -> None:
        found = project.stat_bucket(bucket)
        _require_owner(project, bucket)
        created = (found.created - _EPOCH) // timedelta(microseconds=1)
        project_id = project.session.limits.project_id
        rows.put_document(self._database, project_id, bucket, created, kind, document)
        self._known = {}

    def delete(self, project: Project, bucket: str, kind: str) -> None:
        project.stat_bucket(bucket)
        _require_owner(project, bucket)
        rows.delete_document(self._database, project.session.limits.project_id, bucket, kind)
        self._known = {}

    def forget(self) -> None:
        """Look again at the next question: a bucket has come or gone."""
        self._known = {}


def _require_owner(project: Project, bucket: str) -> None:
    restrictions = project.access.api_key.restrictions()
    if not all(each.allows_bucket(Action.WRITE, bucket, whole=True) for each in restrictions):
        raise PermissionDenied(f"this key does not reach the whole of the bucket {bucket!r}")
