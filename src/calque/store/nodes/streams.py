"""One piece to a node or from it, for those with few threads: a relay, a backup, an exit.

What waits for a frozen disk cannot be interrupted. So the node's side runs in a thread of its own,
which is left behind when the node does nothing for a while; no thread of the caller's is lost. From
then on the node is refused at once, until it answers again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from queue import Empty, Full, Queue

from calque.errors import Aborted, TimedOut
from calque.store.nodes.liveness import Request
from calque.store.nodes.node import Node

SILENCE = 20.0
"""Seconds in which a node must take something of a piece, or give something."""

_AHEAD = 2
"""Chunks that may wait between the two threads."""

_LOOK_EVERY = 0.5
"""Seconds between two looks whether the other thread has ended: it cannot wake who waits then."""

Chunks = Queue[bytes | None]
"""None is the end."""


def write_piece(
    node: Node,
    piece: bytes,
    chunks: Iterable[bytes],
    expires: datetime | None,
    *,
    replace: bool = False,
) -> None:
    """Keep a piece; TimedOut when the node takes nothing of it for long.

    Without ``replace`` one that is there already is ConditionNotMatch, and stays.
    """
    waiting: Chunks = Queue(_AHEAD)
    broken = threading.Event()

    def take() -> Iterator[bytes]:
        while (chunk := _wait_for_chunk(waiting, broken)) is not None:
            yield chunk

    def write() -> None:
        node.write(piece, take(), expires, replace=replace)
        if broken.is_set():  # written after its client was told that it was not
            node.discard(piece)

    request = Request(write)
    request.start()
    try:
        for chunk in chunks:
            if not _hand_over(node, request, waiting, chunk):
                break  # the request has failed, and says below why
        _hand_over(node, request, waiting, None)
        request.join(SILENCE)
        if request.is_alive():
            raise _give_up(node, request)
    except BaseException as error:
        broken.set()
        with suppress(Full):  # wakes who waits for a chunk
            waiting.put_nowait(None)
        if not isinstance(error, TimedOut):
            request.join(2 * _LOOK_EVERY)  # a node that answers has cleaned up by then
        raise
    if request.error is not None:
        raise request.error


def read_piece(node: Node, piece: bytes, offset: int, length: int) -> Iterator[bytes]:
    """``length`` bytes of a piece; TimedOut when the node gives nothing for long."""
    waiting: Chunks = Queue(_AHEAD)
    stopped = threading.Event()

    def give(chunk: bytes | None) -> bool:
        """Whether somebody still takes it: a client may be slow for hours, or gone."""
        while not stopped.is_set():
            try:
                waiting.put(chunk, timeout=_LOOK_EVERY)
                return True
            except Full:
                continue
        return False

    def read() -> None:
        try:
            for chunk in node.read(piece, offset, length):
                if not give(chunk):
                    return
        finally:
            give(None)

    request = Request(read)
    request.start()
    try:
        while (chunk := _next_chunk(node, request, waiting)) is not None:
            yield chunk
        request.join()
        if request.error is not None:
            raise request.error
    finally:
        stopped.set()


def _wait_for_chunk(waiting: Chunks, broken: threading.Event) -> bytes | None:
    """The next chunk of a client, which may be slow for hours; None at the end."""
    while not broken.is_set():
        with suppress(Empty):
            chunk = waiting.get(timeout=_LOOK_EVERY)
            if not broken.is_set():
                return chunk
    # An error and no end: the node must not keep a piece that is cut short.
    raise Aborted("the piece was not sent to its end")


def _hand_over(node: Node, request: Request, waiting: Chunks, chunk: bytes | None) -> bool:
    """Whether the chunk will be taken: False when the request has ended before."""
    until = time.monotonic() + SILENCE
    while request.is_alive():
        try:
            waiting.put(chunk, timeout=_LOOK_EVERY)
            return True
        except Full:
            if time.monotonic() >= until:
                raise _give_up(node, request) from None
    return False


def _next_chunk(node: Node, request: Request, waiting: Chunks) -> bytes | None:
    try:
        return waiting.get(timeout=SILENCE)
    except Empty:
        raise _give_up(node, request) from None


def _give_up(node: Node, request: Request) -> TimedOut:
    node.liveness.note_silence(request)
    return TimedOut(f"node {node.name} has not answered for {SILENCE:g} seconds")
