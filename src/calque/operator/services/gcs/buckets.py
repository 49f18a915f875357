"""The buckets of a project."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from calque.errors import ConfigInvalid
from calque.operator.http.paging import PageGuard
from calque.operator.layers.chain import Call, Chain
from calque.operator.service import Bucket
from calque.operator.services.gcs.client import Link, document
from calque.operator.services.gcs.config import GcsConfig
from calque.operator.services.gcs.errors import error_of
from calque.operator.uri import ServiceUri

_PROJECTS = ("GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT")


def list_buckets(uri: ServiceUri, options: Mapping[str, object], chain: Chain) -> Iterator[Bucket]:
    """Every bucket of the project that the environment names, by name."""
    config = GcsConfig.parse(replace(uri, host="any-bucket", path=""), options)
    project = next(filter(None, map(os.environ.get, _PROJECTS)), config.user_project)
    if not project:
        raise ConfigInvalid(
            "gs:// does not say whose buckets are meant",
            hint="Set GOOGLE_CLOUD_PROJECT to the project, or name a bucket: gs://bucket/.",
        )
    link = Link(config)
    turning, token = PageGuard("gs://"), ""
    try:
        while True:
            url = link.url("/storage/v1/b", {"project": project, "pageToken": token or None})

            def request(call: Call, url: str = url) -> dict[str, object]:
                answer = link.exchange(call, "GET", url)
                if not 200 <= answer.status < 300:
                    raise error_of(answer, "gs://", "list")
                return document(answer, "gs://")

            page = chain.send("list", "", request)
            yield from _buckets_of(page)
            token = str(page.get("nextPageToken") or "")
            if not token:
                return
            turning.check(token, ())
    finally:
        link.close()


def _buckets_of(page: Mapping[str, object]) -> list[Bucket]:
    found = page.get("items", ())
    items = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    return sorted(
        (Bucket(str(each.get("name", "")), _moment(each.get("timeCreated"))) for each in items),
        key=lambda bucket: bucket.name,
    )


def _moment(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text)) if text else None
    except ValueError:
        return None
