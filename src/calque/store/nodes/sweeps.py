"""Work that goes over all of a node: gc, expiry, a check. A node that freezes midway ends it.

Such work may take hours and is no single request, so it has no deadline. But a node that neither
answers a request nor shows another piece for long is frozen, and others wait behind it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from calque.errors import Aborted, TimedOut
from calque.operator.layers.chain import Call
from calque.store.nodes.liveness import Request
from calque.store.nodes.node import Node

T = TypeVar("T")

SILENCE = 600.0
"""Seconds: a request takes far less, but a folder may have to be read whole for its first name."""


def sweep_node(node: Node, work: Callable[[Node], T]) -> T:
    """What ``work`` gives, over a node that it gets; TimedOut when that does nothing for long.

    From then on the work can do nothing more there, should the node answer after all.
    """
    node.require_answer()
    watch = _Watch()
    watched = Node(node.id, node.root.layer(watch), node.placement, watch.note_progress)
    request = Request(lambda: work(watched))
    request.start()
    while request.is_alive():
        request.join(SILENCE / 20)
        if request.is_alive() and time.monotonic() - watch.moved > SILENCE:
            watch.is_over = True
            node.liveness.note_silence(request)
            raise TimedOut(f"node {node.name} has not answered for {SILENCE:g} seconds")
    if request.error is not None:
        raise request.error
    return request.answer  # type: ignore[return-value]  # it has one, without an error


class _Watch:
    """A layer that knows when the node last did something, and lets nothing pass in the end."""

    def __init__(self) -> None:
        self.moved = time.monotonic()
        self.is_over = False

    def __call__(self, call: Call, proceed: Callable[[Call], Any]) -> Any:
        self.note_progress()
        try:
            return proceed(call)
        finally:
            self.note_progress()

    def note_progress(self) -> None:
        if self.is_over:
            raise Aborted("the node was given up: it did not answer for long")
        self.moved = time.monotonic()
