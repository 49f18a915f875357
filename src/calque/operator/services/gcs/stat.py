"""An object looked at: its metadata, and the generation that a condition means."""

from __future__ import annotations

from typing import Any

from calque.errors import ConditionNotMatch, NotFound
from calque.operator.services.gcs.client import Client
from calque.operator.services.gcs.resource import metadata_of
from calque.values import Metadata


def stat(client: Client, path: str, generation: str | None = None) -> Metadata:
    """What is known of an object, or of an old generation of it."""
    return metadata_of(get_resource(client, path, generation), path)


def get_resource(client: Client, path: str, generation: str | None = None) -> dict[str, Any]:
    """The object's resource as the service sends it."""
    return client.send("stat", path, "GET", {"generation": generation})


def find_generation(client: Client, path: str, pin: str | None) -> str | None:
    """The generation an ``if_match`` names: itself, or that of the service's own etag.

    Whoever changes something still makes the change conditional on the generation, so looking
    it up first opens no race.
    """
    if pin is None or pin.isdecimal():
        return pin
    try:
        resource = get_resource(client, path)
    except NotFound as error:
        raise _other_object(client, path, pin) from error
    if resource.get("etag") != pin:
        raise _other_object(client, path, pin)
    return metadata_of(resource, path).version


def _other_object(client: Client, path: str, pin: str) -> ConditionNotMatch:
    return ConditionNotMatch(
        f"{client.location(path)} is not the object that {pin!r} names",
        hint="It was replaced or deleted; nothing was changed.",
    )
