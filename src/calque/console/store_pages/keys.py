"""Keys for S3: made with limits, shown once, revoked."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime

from starlette.datastructures import FormData
from starlette.requests import Request

from calque.console.guard import BASE
from calque.console.page import Page
from calque.console.store_pages.commands import store_command
from calque.console.store_pages.places import parse_place
from calque.errors import InvalidInput
from calque.gateway.keys import AccessKeys, Limits
from calque.store.embedded import EmbeddedStore
from calque.store.metainfo.timestamps import as_utc
from calque.store.uplink.encryption.access import Prefix
from calque.store.uplink.grant import AccessGrant

OPERATIONS = ("read", "write", "list", "delete")


class KeyPages:
    """The keys of a store, under the access of all of it."""

    def __init__(self, store: EmbeddedStore, grant: AccessGrant) -> None:
        self._keys = AccessKeys(store.endpoint.database)
        self._grant = grant
        self._folder = str(store.folder)

    def show_keys(self, request: Request) -> Page:
        """Each by its fingerprint: what it may do, and since when. Never a secret."""
        found = [asdict(each) for each in self._keys.list(self._grant)]
        command = store_command("s3-key", "list", self._folder)
        return Page("keys.html", "Keys", {"keys": found, "operations": OPERATIONS}, command)

    def make(self, request: Request, form: FormData) -> Page:
        """Make a key; this answer is the only one that shows it."""
        name = form.get("name")
        made = self._keys.make(
            self._grant, _limits(form), name=name.strip() if isinstance(name, str) else ""
        )
        data = {
            "access_key_id": made.access_key_id,
            "secret_access_key": made.secret_access_key,
            "fingerprint": made.fingerprint,
        }
        return Page("new_key.html", "A new key", data)

    def revoke(self, request: Request, form: FormData) -> str:
        """Refuse a key from now on."""
        self._keys.revoke(request.query_params.get("fingerprint", ""))
        return f"{BASE}/keys"


def _limits(form: FormData) -> Limits:
    given = form.get("prefixes")
    lines = given.splitlines() if isinstance(given, str) else []
    places = [parse_place(line.strip()) for line in lines if line.strip()]
    until = form.get("until")
    may = {name: form.get(name) == "yes" for name in OPERATIONS}
    if not any(may.values()):
        raise InvalidInput("a key that may do nothing is no use", hint="Allow something.")
    return Limits(
        prefixes=tuple(Prefix(*each) for each in places),
        until=_moment(until) if isinstance(until, str) and until else None,
        **may,
    )


def _moment(text: str) -> datetime:
    try:
        return as_utc(datetime.fromisoformat(text)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"{text!r} is no time", hint="Write 2027-01-01T00:00.") from error
