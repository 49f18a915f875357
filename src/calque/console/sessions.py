"""Who is signed in: a token that is used up by the first who brings it, then a session.

Sessions live in memory and end with the server. Only hashes are kept of what a browser shows, so
that comparing takes the same time whatever is brought.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

LIFE = 12 * 3600.0
"""Seconds that a session lasts."""


@dataclass(frozen=True, slots=True)
class Session:
    """One browser that is signed in."""

    key: bytes = field(repr=False)
    """The hash of its cookie."""
    csrf: str = field(repr=False)
    until: float


class Sessions:
    """The token that may be used next, and who used the ones before. Safe between threads."""

    def __init__(
        self,
        announce: Callable[[str], None] | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._announce = announce
        self._clock = clock
        self._lock = threading.Lock()
        self._token = secrets.token_urlsafe(24)
        self._sessions: dict[bytes, Session] = {}

    @property
    def token(self) -> str:
        """What the next browser signs in with, once."""
        return self._token

    def sign_in(self, token: str) -> str | None:
        """The cookie of a new session, for the token; None where it is wrong or used already."""
        with self._lock:
            if not secrets.compare_digest(_hash(token), _hash(self._token)):
                return None
            self._token = secrets.token_urlsafe(24)
            now = self._clock()
            self._sessions = {k: each for k, each in self._sessions.items() if each.until > now}
            cookie = secrets.token_urlsafe(32)
            key = _hash(cookie)
            self._sessions[key] = Session(key, secrets.token_urlsafe(24), now + LIFE)
        if self._announce is not None:
            self._announce(self._token)
        return cookie

    def find(self, cookie: str | None) -> Session | None:
        """The session of a cookie, while it lasts."""
        session = self._sessions.get(_hash(cookie)) if cookie else None
        return session if session and self.is_open(session) else None

    def is_open(self, session: Session) -> bool:
        """Whether it is signed in still."""
        return session.key in self._sessions and session.until > self._clock()

    def sign_out(self, session: Session) -> None:
        """End a session."""
        with self._lock:
            self._sessions.pop(session.key, None)


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
