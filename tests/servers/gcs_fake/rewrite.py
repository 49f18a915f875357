"""Rewrite: one call after another with a token, until the whole object is at its target.

Across locations or classes a call moves ``maxBytesRewrittenPerCall`` bytes; within one location
and class a single call does all. A token belongs to one set of parameters and one body, and lives
a week. A token may be sent again (its answer may have been lost): it goes on from where it stood.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any

from tests.servers.gcs_fake import conditions
from tests.servers.gcs_fake.model import Bucket, Stored, World, class_of
from tests.servers.gcs_fake.replies import ApiError, Reply, Request, invalid, number

WEEK = 7 * 24 * 3600
MIB = 1024 * 1024
UNCOUNTED = ("rewriteToken", "alt", "prettyPrint", "fields", "key", "quotaUser", "projection")


@dataclass(frozen=True, slots=True)
class Route:
    """From where to where."""

    source_bucket: str
    source: str
    target_bucket: str
    target: str


@dataclass(frozen=True, slots=True)
class Started:
    """What a token stands for."""

    route: Route
    query: dict[str, str]
    body: dict[str, Any]
    generation: int
    born: float
    moved: int


@dataclass(slots=True)
class Rewrites:
    """The tokens that are out."""

    world: World
    tokens: dict[str, Started] = field(default_factory=dict)

    def call(self, request: Request, route: Route) -> Reply:
        """One rewrite call."""
        world, query, body = self.world, request.query, request.json()
        limit = _limit(query)
        started = self._continue(query, body, route)
        if started is not None:
            query, body = started.query, started.body
            limit = _limit(query)
        source = self._source(query, route, started)
        target = world.bucket(route.target_bucket)
        conditions.check(query, source, source=True)
        conditions.check(query, target.find(route.target, None))
        before = started.moved if started else 0
        moved = self._advance(before, source, target, body, limit)
        if moved >= len(source.data):
            return self._finish(source, target, route, body)
        token = secrets.token_urlsafe(48)
        born = started.born if started else world.now()
        counted = {key: value for key, value in query.items() if key not in UNCOUNTED}
        self.tokens[token] = Started(route, counted, body, source.generation, born, moved)
        return Reply.of_json(200, _document(len(source.data), moved, token=token))

    def _continue(
        self, query: dict[str, str], body: dict[str, Any], route: Route
    ) -> Started | None:
        token = query.get("rewriteToken")
        if token is None:
            return None
        started = self.tokens.get(token)
        if started is None or started.route != route:
            raise invalid("Invalid rewrite token", "rewriteToken")
        if self.world.now() - started.born > WEEK:
            raise ApiError(410, "gone", "The rewrite token has expired.", "rewriteToken")
        for key, value in query.items():
            if key not in UNCOUNTED and started.query.get(key) != value:
                raise invalid(f"Parameter {key} does not match the value of the first call", key)
        if body and body != started.body:
            raise invalid("The request body does not match that of the first rewrite call")
        return started

    def _source(self, query: dict[str, str], route: Route, started: Started | None) -> Stored:
        generation = number(query, "sourceGeneration")
        found = self.world.object(route.source_bucket, route.source, generation)
        if started is not None and found.generation != started.generation:
            conditions.check(query, found, source=True)
            raise invalid("The source object changed since the rewrite began", "rewriteToken")
        return found

    def _advance(
        self,
        before: int,
        source: Stored,
        target: Bucket,
        body: dict[str, Any],
        limit: int | None,
    ) -> int:
        home = self.world.bucket(source.bucket).location
        near = home == target.location and class_of(body, target) == source.storage_class
        if near and self.world.near_in_one_call:
            return len(source.data)
        return before + (limit or self.world.rewrite_bytes)

    def _finish(self, source: Stored, target: Bucket, route: Route, body: dict[str, Any]) -> Reply:
        carried = dict(body) if body else dict(source.fields)
        made = self.world.store(
            target, route.target, source.data, carried, components=source.components
        )
        document = _document(len(source.data), len(source.data), done=True)
        document["resource"] = made.resource(self.world.base)
        return Reply.of_json(200, document)


def copy(world: World, request: Request, route: Route) -> Reply:
    """The older one-call copy."""
    source = world.object(
        route.source_bucket, route.source, number(request.query, "sourceGeneration")
    )
    target = world.bucket(route.target_bucket)
    conditions.check(request.query, source, source=True)
    conditions.check(request.query, target.find(route.target, None))
    carried = request.json() or dict(source.fields)
    made = world.store(target, route.target, source.data, carried, source.components)
    return Reply.of_json(200, made.resource(world.base))


def _limit(query: dict[str, str]) -> int | None:
    limit = number(query, "maxBytesRewrittenPerCall")
    if limit is not None and (limit <= 0 or limit % MIB):
        raise invalid(
            "maxBytesRewrittenPerCall must be an integral multiple of 1 MiB",
            "maxBytesRewrittenPerCall",
        )
    return limit


def _document(
    size: int, moved: int, *, token: str | None = None, done: bool = False
) -> dict[str, Any]:
    document: dict[str, Any] = {
        "kind": "storage#rewriteResponse",
        "totalBytesRewritten": str(moved),
        "objectSize": str(size),
        "done": done,
    }
    if token is not None:
        document["rewriteToken"] = token
    return document
