"""A connection: its socket, and what came over it that nobody has read yet."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import struct
import sys
import time
from collections.abc import Sequence
from enum import Enum, auto

from calque.gateway.errors import ClientGone, S3Error
from calque.gateway.http.head import END, LARGEST_HEAD

PATIENCE = 120.0
"""Seconds that a client may be silent in the middle of a body, or not read its answer."""
HEAD_PATIENCE = 60.0
"""Seconds that a client has for a head, from its first byte, or from the connection on."""
KEEP_ALIVE = 75.0
"""Seconds of silence between two requests."""
_HUNG_UP = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)
DAWDLES = 60.0
"""Seconds after which a client can be told from one that moves nothing."""
LEAST_SPEED = 1024.0
"""Bytes a second, over its request, below which a client may have to make room for others."""
_BEGINNINGS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ\r\n")
"""What a request may begin with: a method, or an empty line that a client left behind."""
GREETING = 56 * 1024
"""Bytes, about, that OpenSSL holds for a greeting that is not whole."""
_AT_ONCE = 64 * 1024
_MOST_AT_ONCE = 4


class Step(Enum):
    """What a connection that nobody works on waits for."""

    READ = auto()
    WRITE = auto()
    READY = auto()
    OVER = auto()


class Connection:
    """One client. A thread at a time uses it; :meth:`hang_up` may come from any."""

    def __init__(self, line: socket.socket, tls: ssl.SSLContext | None) -> None:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        line.setblocking(False)
        self.is_secure = tls is not None
        self._tls = tls
        """Until the client begins to greet."""
        self._is_greeted = tls is None
        self._line = line
        self.held = b""
        self._searched = 0
        self._is_draining = False
        self.is_idle = False
        """Whether its thread waits for a next request."""
        self.due = time.monotonic() + HEAD_PATIENCE
        """When it has said nothing for too long."""
        self._began = time.monotonic()
        self._moved = 0
        self._under_way = 0
        """Bytes that a call waits for, or sends: some may have moved, and nobody knows how many."""
        self._waits_for_client = False
        self.was_hung_up = False

    def fileno(self) -> int:
        return self._line.fileno()

    # While nobody works on it: nothing waits.

    def advance(self) -> Step:
        """Take what has come, without waiting."""
        try:
            if not self._is_greeted:
                self._greet()
            # Not until nothing comes any more: one client that sends on and on, and whose request
            # was refused, would have the thread that waits with all others to itself.
            for _ in range(_MOST_AT_ONCE):
                data = self._line.recv(_AT_ONCE)
                if not data:
                    return Step.OVER
                if self._is_draining:
                    continue
                if not self.held:  # a head has a time from its first byte on
                    self.due = time.monotonic() + HEAD_PATIENCE
                self.held += data
                if self.has_head:
                    return Step.READY
            return Step.READ
        except (BlockingIOError, ssl.SSLWantReadError):
            return Step.READ
        except ssl.SSLWantWriteError:
            return Step.WRITE
        except OSError:  # gone, or no TLS
            return Step.OVER

    def _greet(self) -> None:
        """Go on with the greeting of TLS. Nothing is held for it before the client has begun:
        who connects and is silent costs a socket and no more."""
        if self._tls is not None:
            self._line.recv(1, socket.MSG_PEEK)
            self._line = self._tls.wrap_socket(
                self._line, server_side=True, do_handshake_on_connect=False
            )
            self._tls = None
        assert isinstance(self._line, ssl.SSLSocket)
        self._line.do_handshake()
        self._is_greeted = True

    @property
    def size(self) -> int:
        """Bytes that it takes while nobody knows whose it is."""
        is_greeting = self._tls is None and not self._is_greeted
        return len(self.held) + (GREETING if is_greeting else 0)

    def is_late(self, now: float) -> bool:
        return now > self.due

    @property
    def has_head(self) -> bool:
        """Whether a whole head is here, more than one may have, or what can become none: a
        greeting of TLS on a port without it would wait for an answer as long as for a head."""
        found = self.held.find(END, max(0, self._searched - len(END)))
        self._searched = len(self.held)
        can_begin = not self.held or self.held[0] in _BEGINNINGS
        return found >= 0 or len(self.held) > LARGEST_HEAD or not can_begin

    def rest(self) -> None:
        """From now on nothing waits."""
        self._line.setblocking(False)
        self.due = time.monotonic() + (HEAD_PATIENCE if self.held else KEEP_ALIVE)

    def drain(self) -> None:
        """Say no more, and read what the client still sends: were it left unread, the system would
        take back the answer that the client has not read yet."""
        self._line.shutdown(socket.SHUT_WR)
        self._is_draining = True
        self.held = b""
        self._line.setblocking(False)
        self.due = time.monotonic() + HEAD_PATIENCE

    def drain_within(self, seconds: float) -> None:
        """The same for some time, where nobody else waits with it any more."""
        self.drain()
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and _wait_for_bytes(self._line, left):
            if self.advance() is not Step.READ:
                return

    # While a thread works on it: everything waits, and not for ever.

    def work(self) -> None:
        """From now on everything waits."""
        if self.is_secure:
            self._line.settimeout(PATIENCE)
            return
        # By the system's own clock, so that one call receives or sends a whole block.
        self._line.settimeout(None)
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            self._line.setsockopt(socket.SOL_SOCKET, option, _time_value(PATIENCE))

    def begin_request(self) -> None:
        """From now on its bytes are counted anew."""
        self._began, self._moved = time.monotonic(), 0

    def dawdles(self) -> bool:
        """Whether its thread waits for a client that hardly moves; any thread may ask.

        Never while the store is what takes its time.
        """
        if self.was_hung_up or not self._waits_for_client:
            return False
        seconds = time.monotonic() - self._began
        return seconds > DAWDLES and self._moved + self._under_way < LEAST_SPEED * seconds

    def is_open(self) -> bool:
        """Whether the client may still be there; any thread may ask.

        One that says it will send no more counts as gone: most often it is.
        """
        poll = select.poll()
        poll.register(self._line, _HUNG_UP)
        return not poll.poll(0)

    def await_head(self, seconds: float) -> bool:
        """Whether a head is here within some time; False too when the client is gone."""
        until = time.monotonic() + seconds
        try:
            while not self.has_head:
                left = until - time.monotonic()
                data = self._receive_within(left) if left > 0 else b""
                if not data:
                    return False
                self.held += data
        except OSError:
            return False
        return True

    def take_head(self) -> bytes | None:
        """The head that is here, without what follows it; None of one that is too long."""
        end = self.held.find(END)
        if end < 0 or end > LARGEST_HEAD:
            return None
        head, self.held = self.held[: end + len(END)], self.held[end + len(END) :]
        self._searched = 0
        return head

    def receive(self, most: int) -> bytes:
        """Up to ``most`` bytes, fewer where the client pauses or ends; ClientGone at the end."""
        if not self.held:
            return self._receive(most)
        taken, self.held = self.held[:most], self.held[most:]
        return taken if len(taken) == most else taken + self._receive(most - len(taken))

    def receive_some(self) -> bytes:
        """What has come, at least a byte."""
        if self.held:
            taken, self.held = self.held, b""
            return taken
        return self._receive(_AT_ONCE, whole=False)

    def send(self, *blocks: bytes) -> None:
        """All of it; ClientGone when the client is, or takes nothing for too long."""
        size = self._under_way = sum(map(len, blocks))
        self._waits_for_client = True
        try:
            self._send_all(blocks)
        except (OSError, ValueError) as error:
            raise ClientGone from error
        finally:
            self._waits_for_client = False
            self._under_way = 0
        self._moved += size

    def _send_all(self, blocks: Sequence[bytes]) -> None:
        if self.is_secure:
            # In bites: TLS has one time for all that it is given, however well the client reads.
            data = memoryview(b"".join(blocks))
            for start in range(0, len(data), _AT_ONCE):
                self._line.sendall(data[start : start + _AT_ONCE])
            return
        sent = self._line.sendmsg(blocks)
        for block in blocks:
            if sent < len(block):
                self._line.sendall(memoryview(block)[sent:])
            sent = max(0, sent - len(block))

    def hang_up(self) -> None:
        """End every wait, and the connection."""
        self.was_hung_up = True
        with contextlib.suppress(OSError):
            # Of the socket itself, whatever lies over it: a thread may be within that.
            socket.socket.shutdown(self._line, socket.SHUT_RDWR)

    def close(self) -> None:
        self._line.close()

    def _receive_within(self, seconds: float) -> bytes:
        """What comes within some time; nothing if nothing does."""
        if not self.is_secure:
            return self._line.recv(_AT_ONCE) if _wait_for_bytes(self._line, seconds) else b""
        # There may be bytes, and no whole record of TLS: to wait for those would have no end.
        self._line.settimeout(seconds)
        try:
            return self._line.recv(_AT_ONCE)
        finally:
            self._line.settimeout(PATIENCE)

    def _receive(self, most: int, *, whole: bool = True) -> bytes:
        flags = socket.MSG_WAITALL if whole and not self.is_secure else 0
        self._under_way = most if flags else 0
        self._waits_for_client = True
        try:
            data = self._line.recv(most, flags)
        except (TimeoutError, BlockingIOError) as error:
            raise S3Error(
                "RequestTimeout",
                "Your socket connection to the server was not read from or written to within "
                "the timeout period.",
            ) from error
        except (OSError, ValueError) as error:
            raise ClientGone from error
        finally:
            self._waits_for_client = False
            self._under_way = 0
        if not data:
            raise ClientGone
        self._moved += len(data)
        return data


def _wait_for_bytes(line: socket.socket, seconds: float) -> list[tuple[int, int]]:
    poll = select.poll()
    poll.register(line, select.POLLIN)
    return poll.poll(seconds * 1000)


def _time_value(seconds: float) -> bytes:
    if sys.platform == "win32":
        return struct.pack("L", int(seconds * 1000))
    return struct.pack("ll", int(seconds), int(seconds % 1 * 1_000_000))
