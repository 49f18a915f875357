"""How a request passes through layers.

A service sends each single request (one HTTP exchange, one system call sequence) through
``Chain.run``. A layer is a plain callable that gets the call and what is left of the chain; it may
repeat it, delay it, count it or fail it. Layers never see bytes or credentials.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """One request: its verb (``stat``, ``copy_part`` …), its path, and how long it may take.

    ``idempotent`` False: a repeat could do harm after an answer was lost; it is repeated only
    when the server surely did not act. ``slow`` True: a living answer may take minutes (Complete).
    """

    verb: str
    path: str
    idempotent: bool = True
    slow: bool = False
    timeout: float | None = None
    """Seconds the transport may wait; set by the timeout layer, obeyed by the service."""
    deadline: float | None = None
    """When the whole must be over, by the layers' clock; no attempt begins after it."""
    within: float | None = None
    """Seconds in which all of the answer must have come, however lively it trickles."""
    stopped: Callable[[], bool] | None = None
    """Asked by the transport several times a second; once it is True the request is given up."""

    def with_timeout(self, seconds: float | None, within: float | None = None) -> Call:
        # spelled out: dataclasses.replace costs more than the rest of the chain together
        return Call(
            self.verb,
            self.path,
            self.idempotent,
            self.slow,
            seconds,
            self.deadline,
            within,
            self.stopped,
        )


class Layer(Protocol):
    def __call__(self, call: Call, proceed: Callable[[Call], T]) -> T: ...


@dataclass(frozen=True, slots=True)
class Chain:
    """Layers, outermost first."""

    layers: tuple[Layer, ...] = ()

    def around(self, layer: Layer) -> Chain:
        """This chain with one more layer on the outside."""
        return Chain((layer, *self.layers))

    def run(self, call: Call, request: Callable[[Call], T]) -> T:
        """Send a request through every layer; ``request`` gets the call as the layers left it."""
        return _descend(self.layers, call, request)

    def send(
        self,
        verb: str,
        path: str,
        request: Callable[[Call], T],
        *,
        idempotent: bool = True,
        slow: bool = False,
    ) -> T:
        """:meth:`run` for a call that is yet to be made."""
        return _descend(self.layers, Call(verb, path, idempotent, slow), request)


def _descend(layers: tuple[Layer, ...], call: Call, request: Callable[[Call], T]) -> T:
    if not layers:
        return request(call)
    outer, inner = layers[0], layers[1:]
    return outer(call, lambda passed: _descend(inner, passed, request))
