"""The calls on buckets."""

from __future__ import annotations

from calque.store.metabase.accounts import get_bucket as metabase
from calque.store.metabase.accounts.create_bucket import CreateBucket, create_bucket
from calque.store.metabase.objects.delete_batch import (
    BucketDeleted,
    DeleteBucket,
    delete_bucket,
)
from calque.store.metainfo.api_key import Action
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.satellite.caller import Caller
from calque.store.satellite.calls import messages
from calque.store.satellite.satellite import Satellite, page_limit


def create(
    satellite: Satellite, caller: Caller, request: pb.BucketCreateRequest
) -> pb.BucketCreateResponse:
    """CreateBucket."""
    caller.require_bucket(Action.WRITE, request.name)
    asked = CreateBucket(caller.project_id, request.name, request.placement)
    return pb.BucketCreateResponse(bucket=messages.bucket(create_bucket(satellite.database, asked)))


def get(satellite: Satellite, caller: Caller, request: pb.BucketGetRequest) -> pb.BucketGetResponse:
    """GetBucket."""
    _require_sight(caller, request.name)
    record = metabase.get_bucket(satellite.database, caller.project_id, request.name)
    return pb.BucketGetResponse(bucket=messages.bucket(record))


def delete(
    satellite: Satellite, caller: Caller, request: pb.BucketDeleteRequest
) -> pb.BucketDeleteResponse:
    """DeleteBucket: pieces are freed batch by batch, as each is committed."""
    caller.require_bucket(Action.DELETE, request.name)
    asked = DeleteBucket(caller.project_id, request.name, everything=request.delete_all)
    response = pb.BucketDeleteResponse()
    for step in delete_bucket(satellite.database, asked):
        if isinstance(step, BucketDeleted):
            response.bucket.CopyFrom(messages.bucket(step.bucket))
            step = step.along
        response.deleted_objects += step.deleted
        satellite.free(step.freed)
    return response


def list_(
    satellite: Satellite, caller: Caller, request: pb.BucketListRequest
) -> pb.BucketListResponse:
    """ListBuckets: only those in which the key may do something."""
    limit = page_limit(request.limit, metabase.MAX_PAGE)
    cursor, more = request.cursor, True
    seen: list[pb.Bucket] = []
    while more and len(seen) < limit:
        asked = metabase.ListBuckets(caller.project_id, cursor, limit - len(seen))
        records, more = metabase.list_buckets(satellite.database, asked)
        seen.extend(messages.bucket(each) for each in records if caller.sees_bucket(each.name))
        cursor = records[-1].name if records else cursor
    return pb.BucketListResponse(items=seen, more=more)


def _require_sight(caller: Caller, name: str) -> None:
    # The same answer whether there is such a bucket or not: a key learns nothing of what it may
    # not reach.
    if not caller.sees_bucket(name):
        caller.require_bucket(Action.LIST, name)
