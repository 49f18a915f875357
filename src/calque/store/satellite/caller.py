"""Who is calling: an API key that was checked, and what it may do."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from hashlib import sha256

from calque.errors import PermissionDenied
from calque.store.metabase.accounts.api_keys import any_revoked, api_key_secret
from calque.store.metabase.engine.database import Database
from calque.store.metabase.model.records import ObjectLocation
from calque.store.metainfo.api_key import Action, ApiKey, Restriction

TRUST_US = 1_000_000
"""How long a checked key is believed: a revocation elsewhere takes effect within this."""

MAX_REMEMBERED = 4096


@dataclass(frozen=True)
class Caller:
    """A project and the restrictions of the key that speaks for it."""

    project_id: bytes
    identity: bytes
    restrictions: tuple[Restriction, ...]

    def location(self, bucket: str, key: bytes) -> ObjectLocation:
        """A key in this caller's project."""
        return ObjectLocation(self.project_id, bucket, key)

    def may(self, action: Action, bucket: str, key: bytes) -> bool:
        """Whether every restriction allows ``action`` at this key."""
        return all(each.allows(action, bucket, key) for each in self.restrictions)

    def require(self, action: Action, bucket: str, key: bytes, which: str = "object") -> None:
        """``PermissionDenied`` unless :meth:`may`."""
        if not self.may(action, bucket, key):
            raise PermissionDenied(
                f"this API key may not {action.name.lower()} the {which} in bucket {bucket!r}"
            )

    def require_any(self, actions: tuple[Action, ...], bucket: str, key: bytes) -> None:
        """``PermissionDenied`` unless one of ``actions`` is allowed."""
        if not any(self.may(action, bucket, key) for action in actions):
            names = " or ".join(action.name.lower() for action in actions)
            raise PermissionDenied(f"this API key may not {names} the object in bucket {bucket!r}")

    def sees_bucket(self, name: str) -> bool:
        """Whether the key reaches anything in the bucket."""
        return any(
            all(each.allows_bucket(action, name, whole=False) for each in self.restrictions)
            for action in Action
        )

    def require_bucket(self, action: Action, name: str) -> None:
        """``PermissionDenied`` unless ``action`` is allowed on the whole bucket."""
        if not all(each.allows_bucket(action, name, whole=True) for each in self.restrictions):
            raise PermissionDenied(
                f"this API key may not {action.name.lower()} the bucket {name!r}"
            )


class Gatekeeper:
    """Turns the bytes of an API key into a caller; remembers keys for a moment."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._checked: dict[bytes, tuple[Caller, int]] = {}

    def admit(self, data: bytes) -> Caller:
        """The caller behind ``data``, or ``PermissionDenied`` (also before and after its time)."""
        now = self._database.clock()
        # Without the lock: a dict's get is atomic, and a stale answer is as good as one that was
        # asked for a moment earlier.
        remembered = self._checked.get(data)
        if remembered is not None and now - remembered[1] < TRUST_US:
            caller = remembered[0]
        else:
            caller = self._check(data)
            self._remember(data, caller, now)
        # Every time, also for a remembered key: its hour may have come or gone since.
        if not all(each.valid_at(now) for each in caller.restrictions):
            raise PermissionDenied("the API key is not valid at this time")
        return caller

    def forget(self) -> None:
        """Check every key anew from now on."""
        with self._lock:
            self._checked.clear()

    def tail(self, by: bytes, data: bytes) -> bytes:
        """The tail of a key that is to be revoked: ``by`` itself, or a key that was made from it.

        Keys are made offline, so what counts is the chain: it must pass through ``by``.
        """
        own, key = ApiKey.parse(by), ApiKey.parse(data)
        self._check(data)
        if key.head != own.head or key.caveats[: len(own.caveats)] != own.caveats:
            raise PermissionDenied(
                "a key may revoke only itself and the keys that were made from it",
                hint="Revoke it with the key that it was made from.",
            )
        return key.tail

    def _check(self, data: bytes) -> Caller:
        key = ApiKey.parse(data)
        stored = api_key_secret(self._database, key.head)
        if stored is None:
            raise PermissionDenied("the API key is not one of this satellite's")
        tails = key.tails(stored.secret)
        if any_revoked(self._database, tails):
            raise PermissionDenied("the API key was revoked")
        return Caller(stored.project_id, sha256(data).digest(), tuple(key.restrictions()))

    def _remember(self, data: bytes, caller: Caller, now: int) -> None:
        with self._lock:
            if len(self._checked) >= MAX_REMEMBERED:
                self._checked.clear()
            self._checked[data] = (caller, now)
