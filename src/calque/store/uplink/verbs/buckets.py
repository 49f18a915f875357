"""Buckets: their names are plain, what is in them is not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from calque.errors import AlreadyExists, InvalidInput
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.metainfo.timestamps import as_datetime
from calque.store.uplink.session import Session
from calque.store.uplink.utf8 import encode_utf8

_LARGEST_PLACEMENT = 2**15 - 1


@dataclass(frozen=True, slots=True)
class BucketInfo:
    name: str
    created: datetime
    placement: int


def create_bucket(
    session: Session, name: str, *, placement: int = 0, exist_ok: bool = False
) -> BucketInfo:
    """Make a bucket; AlreadyExists when there is one, unless ``exist_ok``."""
    encode_utf8(name, "the name of a bucket")
    if not 0 <= placement <= _LARGEST_PLACEMENT:
        raise InvalidInput(f"a placement is a number from 0 to {_LARGEST_PLACEMENT}")
    try:
        made = session.metainfo.create_bucket(
            pb.BucketCreateRequest(header=session.header, name=name, placement=placement)
        )
    except AlreadyExists:
        if not exist_ok:
            raise
        return stat_bucket(session, name)
    return _info(made.bucket)


def stat_bucket(session: Session, name: str) -> BucketInfo:
    """One bucket; NotFound when there is none."""
    encode_utf8(name, "the name of a bucket")
    found = session.metainfo.get_bucket(pb.BucketGetRequest(header=session.header, name=name))
    return _info(found.bucket)


def delete_bucket(session: Session, name: str, *, with_objects: bool = False) -> int:
    """Delete a bucket, empty or ``with_objects``; how many objects and uploads went with it.

    Where there is no object, uploads under way are no hindrance: they go in the same transaction.
    """
    encode_utf8(name, "the name of a bucket")
    answer = session.metainfo.delete_bucket(
        pb.BucketDeleteRequest(header=session.header, name=name, delete_all=with_objects)
    )
    return answer.deleted_objects


def list_buckets(session: Session) -> Iterator[BucketInfo]:
    """The buckets that this access may see, by name."""
    cursor = ""
    while True:
        page = session.metainfo.list_buckets(
            pb.BucketListRequest(
                header=session.header, cursor=cursor, limit=session.settings.list_page
            )
        )
        yield from (_info(bucket) for bucket in page.items)
        if not page.more:
            return
        cursor = page.items[-1].name


def _info(bucket: pb.Bucket) -> BucketInfo:
    return BucketInfo(bucket.name, as_datetime(bucket.created_at), bucket.placement)
