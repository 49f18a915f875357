"""Which verb a request means."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import unquote

from tests.servers.gcs_fake import objects, rewrite
from tests.servers.gcs_fake.model import CLASSES, Bucket, World
from tests.servers.gcs_fake.replies import ApiError, Reply, Request, invalid
from tests.servers.gcs_fake.rewrite import Rewrites, Route
from tests.servers.gcs_fake.uploads import Uploads

BASE = r"(?:/download)?/storage/v1/b"
BUCKETS = re.compile(rf"{BASE}")
BUCKET = re.compile(rf"{BASE}/([^/]+)")
OBJECTS = re.compile(rf"{BASE}/([^/]+)/o")
OBJECT = re.compile(rf"{BASE}/([^/]+)/o/([^/]+)")
COMPOSE = re.compile(rf"{BASE}/([^/]+)/o/([^/]+)/compose")
TRANSFER = re.compile(rf"{BASE}/([^/]+)/o/([^/]+)/(rewrite|copy)To/b/([^/]+)/o/([^/]+)")
UPLOAD = re.compile(r"(?:/resumable)?/upload/storage/v1/b/([^/]+)/o")
BUCKET_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]")


@dataclass(slots=True)
class Routes:
    """The whole API as one function from request to reply; one request at a time."""

    world: World
    rewrites: Rewrites = field(init=False)
    uploads: Uploads = field(init=False)

    def __post_init__(self) -> None:
        self.rewrites, self.uploads = Rewrites(self.world), Uploads(self.world)

    def answer(self, request: Request) -> Reply:
        try:
            with self.world.lock:
                return self._dispatch(request)
        except ApiError as error:
            return error.reply(media=request.query.get("alt") == "media")

    def _dispatch(self, request: Request) -> Reply:
        path, method = request.path, request.method
        if found := UPLOAD.fullmatch(path):
            return self._upload(request, unquote(found[1]))
        if (found := TRANSFER.fullmatch(path)) and method == "POST":
            source_bucket, source, verb, bucket, name = map(unquote, found.groups())
            route = Route(source_bucket, source, bucket, name)
            self._note(f"{verb} {source} {name}")
            if verb == "rewrite":
                return self.rewrites.call(request, route)
            return rewrite.copy(self.world, request, route)
        if (found := COMPOSE.fullmatch(path)) and method == "POST":
            self._note("compose")
            return objects.compose(self.world, request, unquote(found[1]), unquote(found[2]))
        if found := OBJECT.fullmatch(path):
            return self._object(request, unquote(found[1]), unquote(found[2]))
        if (found := OBJECTS.fullmatch(path)) and method == "GET":
            self._note("list")
            return objects.listing(self.world, request, unquote(found[1]))
        if found := BUCKET.fullmatch(path):
            return self._bucket(request, unquote(found[1]))
        if BUCKETS.fullmatch(path):
            return self._buckets(request)
        raise ApiError(404, "notFound", "Not Found")

    def _note(self, entry: str) -> None:
        self.world.journal.entries.append(entry)

    def _upload(self, request: Request, bucket: str) -> Reply:
        verb = {"POST": "insert", "PUT": "chunk", "DELETE": "cancel"}.get(request.method)
        self._note(f"{verb} {request.query.get('uploadType')}")
        if verb == "insert":
            return self.uploads.insert(request, bucket)
        if verb == "chunk":
            return self.uploads.put(request)
        if verb == "cancel":
            return self.uploads.cancel(request)
        raise ApiError(405, "methodNotAllowed", "Method Not Allowed")

    def _object(self, request: Request, bucket: str, name: str) -> Reply:
        media = " media" if request.query.get("alt") == "media" else ""
        self._note(f"{request.method.lower()}{media} {name}")
        if request.method == "GET":
            return objects.get(self.world, request, bucket, name)
        if request.method == "DELETE":
            return objects.delete(self.world, request, bucket, name)
        if request.method in ("PATCH", "PUT"):
            return objects.patch(self.world, request, bucket, name)
        raise ApiError(405, "methodNotAllowed", "Method Not Allowed")

    def _bucket(self, request: Request, name: str) -> Reply:
        bucket = self.world.bucket(name)
        if request.method == "DELETE":
            if bucket.live or any(bucket.archived.values()):
                raise ApiError(409, "conflict", "The bucket you tried to delete is not empty.")
            del self.world.buckets[name]
            return Reply(204)
        if request.method == "PATCH":
            _configure(bucket, request)
        return Reply.of_json(200, bucket.resource())

    def _buckets(self, request: Request) -> Reply:
        if request.method == "GET":
            items = [bucket.resource() for bucket in self.world.buckets.values()]
            return Reply.of_json(200, {"kind": "storage#buckets", "items": items})
        body = request.json()
        name = str(body.get("name", ""))
        if not BUCKET_NAME.fullmatch(name):
            raise invalid(f"Invalid bucket name: '{name}'", "name")
        if name in self.world.buckets:
            raise ApiError(
                409,
                "conflict",
                "The requested bucket name is not available: you already own it.",
            )
        bucket = Bucket(name, str(body.get("location") or "US").upper())
        _configure(bucket, request)
        self.world.buckets[name] = bucket
        return Reply.of_json(200, bucket.resource())


def _configure(bucket: Bucket, request: Request) -> None:
    body = request.json()
    bucket.versioning = bool((body.get("versioning") or {}).get("enabled", bucket.versioning))
    wanted = str(body.get("storageClass") or bucket.storage_class)
    if wanted not in CLASSES:
        raise invalid(f"Invalid argument: storageClass {wanted}")
    bucket.storage_class = wanted
    if request.method == "PATCH":
        bucket.metageneration += 1
