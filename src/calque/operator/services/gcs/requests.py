"""Requests of one root in a bucket, sent through the layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calque.errors import ConditionNotMatch, NotFound
from calque.operator import paths
from calque.operator.layers.chain import Chain
from calque.operator.services.gcs.client import GcsClient, Query, object_path
from calque.operator.services.gcs.resource import metadata_of
from calque.values import Metadata


@dataclass(frozen=True, slots=True)
class Requests:
    """What every verb needs: where objects are, and a way to ask."""

    client: GcsClient
    chain: Chain
    bucket: str
    root: str

    def key(self, path: str) -> str:
        return paths.join(self.root, paths.unicode_path(path))

    def location(self, path: str) -> str:
        return f"gs://{self.bucket}/{self.key(path)}"

    def about(
        self,
        verb: str,
        path: str,
        method: str,
        query: Query,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        idempotent: bool = True,
    ) -> dict[str, Any]:
        """Ask something about one object; the JSON of the answer."""
        url = self.client.url(object_path(self.bucket, self.key(path)), query)
        return self.chain.send(
            verb,
            path,
            lambda call: self.client.ask(
                call, self.location(path), method, url, headers=headers, body=body
            ),
            idempotent=idempotent,
        )

    def stat(self, path: str, generation: str | None = None) -> Metadata:
        return metadata_of(self.resource(path, generation), path)

    def resource(self, path: str, generation: str | None = None) -> dict[str, Any]:
        """The object's resource as the service sends it."""
        return self.about("stat", path, "GET", {"generation": generation})

    def generation_of(self, path: str, pin: str | None) -> str | None:
        """The generation an ``if_match`` names: itself, or that of the service's own etag.

        Whoever changes something still makes the change conditional on the generation, so looking
        it up first opens no race.
        """
        if pin is None or pin.isdecimal():
            return pin
        try:
            resource = self.resource(path)
        except NotFound as error:
            raise self._other(path, pin) from error
        if resource.get("etag") != pin:
            raise self._other(path, pin)
        return str(resource["generation"])

    def _other(self, path: str, pin: str) -> ConditionNotMatch:
        return ConditionNotMatch(
            f"{self.location(path)} is not the object that {pin!r} names",
            hint="It was replaced or deleted; nothing was changed.",
        )
