"""Get, list, patch, delete and compose."""

from __future__ import annotations

import base64
import binascii
import gzip
import re
from typing import Any

from tests.servers.gcs_fake import conditions
from tests.servers.gcs_fake.model import WRITABLE, Bucket, Stored, World
from tests.servers.gcs_fake.replies import ApiError, Reply, Request, invalid, number

COMPOSE_MOST = 32
PAGE_MOST = 1000


def get(world: World, request: Request, bucket: str, name: str) -> Reply:
    """Metadata, or with ``alt=media`` the bytes."""
    found = world.object(bucket, name, number(request.query, "generation"))
    conditions.check(request.query, found, reading=True)
    if request.query.get("alt") == "media":
        return _media(request, found)
    return Reply.of_json(200, found.resource(world.base), ETag=found.etag)


def _media(request: Request, found: Stored) -> Reply:
    headers = {
        "Content-Type": str(found.fields.get("contentType", "application/octet-stream")),
        "ETag": found.etag,
        "x-goog-generation": str(found.generation),
        "x-goog-metageneration": str(found.metageneration),
        "x-goog-storage-class": found.storage_class,
        "x-goog-stored-content-length": str(len(found.data)),
        "x-goog-hash": f"crc32c={found.crc32c}",
        "Accept-Ranges": "bytes",
    }
    if found.components is None:
        headers["x-goog-hash"] += f",md5={found.md5}"
    encoding = found.fields.get("contentEncoding")
    if encoding == "gzip" and "gzip" not in request.headers.get("accept-encoding", ""):
        # Decompressive transcoding: the service unpacks for a caller that does not take gzip,
        # and ignores the range.
        return Reply(200, gzip.decompress(found.data), headers)
    if encoding:
        headers["Content-Encoding"] = str(encoding)
    return _ranged(request.headers.get("range"), found.data, headers)


def _ranged(wanted: str | None, data: bytes, headers: dict[str, str]) -> Reply:
    parsed = re.fullmatch(r"bytes=(\d*)-(\d*)", wanted or "")
    if parsed is None or parsed.groups() == ("", ""):
        return Reply(200, data, headers)
    first, last = parsed.groups()
    start = int(first) if first else max(len(data) - int(last), 0)
    end = min(int(last), len(data) - 1) if first and last else len(data) - 1
    if start >= len(data) or end < start:
        raise ApiError(
            416, "requestedRangeNotSatisfiable", "Request range not satisfiable", "Range"
        )
    span = {"Content-Range": f"bytes {start}-{end}/{len(data)}"}
    return Reply(206, data[start : end + 1], headers | span)


def listing(world: World, request: Request, bucket_name: str) -> Reply:
    """One page in byte order; prefixes count towards the page."""
    query = request.query
    most = number(query, "maxResults") or PAGE_MOST
    if most < 0:
        raise invalid("Invalid value for maxResults", "maxResults")
    entries = _entries(world.bucket(bucket_name), query)
    page, rest = entries[: min(most, PAGE_MOST)], entries[min(most, PAGE_MOST) :]
    document: dict[str, Any] = {"kind": "storage#objects"}
    items = [found.resource(world.base) for _, found in page if isinstance(found, Stored)]
    prefixes = [key for key, found in page if found is None]
    if items:
        document["items"] = items
    if prefixes:
        document["prefixes"] = prefixes
    if rest:
        last, found = page[-1]
        tail = found.generation if isinstance(found, Stored) else 0
        document["nextPageToken"] = base64.b64encode(f"{tail}:{last}".encode()).decode()
    return Reply.of_json(200, document)


def _entries(bucket: Bucket, query: dict[str, str]) -> list[tuple[str, Stored | None]]:
    prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
    start, end = query.get("startOffset", "").encode(), query.get("endOffset", "").encode()
    after = _page_after(query.get("pageToken"))
    found: dict[tuple[bytes, int], tuple[str, Stored | None]] = {}
    for stored in _candidates(bucket, query.get("versions", "").lower() == "true"):
        raw = stored.name.encode()
        if not stored.name.startswith(prefix) or raw < start or (end and raw >= end):
            continue
        cut = stored.name.find(delimiter, len(prefix)) if delimiter else -1
        if cut >= 0:
            folder = stored.name[: cut + len(delimiter)]
            found[(folder.encode(), 0)] = (folder, None)
        else:
            found[(raw, stored.generation)] = (stored.name, stored)
    return [found[key] for key in sorted(found) if after is None or key > after]


def _candidates(bucket: Bucket, versions: bool) -> list[Stored]:
    live = list(bucket.live.values())
    if not versions:
        return live
    return live + [one for past in bucket.archived.values() for one in past]


def _page_after(token: str | None) -> tuple[bytes, int] | None:
    if not token:
        return None
    try:
        generation, _, key = base64.b64decode(token, validate=True).decode().partition(":")
        return key.encode(), int(generation)
    except (binascii.Error, ValueError) as error:
        raise invalid("Invalid argument: pageToken", "pageToken") from error


def patch(world: World, request: Request, bucket: str, name: str) -> Reply:
    """Change metadata: a null removes, metadata keys are merged; metageneration goes up."""
    found = world.object(bucket, name, number(request.query, "generation"))
    conditions.check(request.query, found)
    for key, value in request.json().items():
        if key not in WRITABLE:
            continue
        if key == "metadata" and isinstance(value, dict):
            merged = {**found.fields.get("metadata", {}), **value}
            value = {word: text for word, text in merged.items() if text is not None}
        if value in (None, {}):
            found.fields.pop(key, None)
        else:
            found.fields[key] = value
    found.metageneration += 1
    found.updated = world.now()
    return Reply.of_json(200, found.resource(world.base))


def delete(world: World, request: Request, bucket_name: str, name: str) -> Reply:
    generation = number(request.query, "generation")
    bucket = world.bucket(bucket_name)
    found = world.object(bucket_name, name, generation)
    conditions.check(request.query, found)
    if generation is None:
        bucket.retire(name, world.now())
    else:
        bucket.erase(name, generation)
    return Reply(204)


def compose(world: World, request: Request, bucket_name: str, name: str) -> Reply:
    """Join up to 32 objects of one bucket: a crc32c and no md5."""
    bucket, body = world.bucket(bucket_name), request.json()
    wanted = body.get("sourceObjects") or []
    if not 1 <= len(wanted) <= COMPOSE_MOST:
        raise invalid(
            f"The number of source components provided ({len(wanted)}) exceeds the maximum (32)"
            if wanted
            else "You must provide at least one source component."
        )
    sources = [_component(world, bucket_name, entry) for entry in wanted]
    conditions.check(request.query, bucket.find(name, None))
    made = world.store(
        bucket,
        name,
        b"".join(source.data for source in sources),
        body.get("destination") or {},
        components=sum(source.components or 1 for source in sources),
    )
    if body.get("deleteSourceObjects"):
        for source in sources:
            if source is not made:
                bucket.erase(source.name, source.generation)
    return Reply.of_json(200, made.resource(world.base))


def _component(world: World, bucket: str, entry: dict[str, Any]) -> Stored:
    generation = entry.get("generation")
    found = world.object(bucket, entry["name"], int(generation) if generation else None)
    wanted = (entry.get("objectPreconditions") or {}).get("ifGenerationMatch")
    if wanted is not None:
        conditions.check({"ifGenerationMatch": str(wanted)}, found)
    return found
