"""Fault points: named steps at which a process can be stopped on purpose.

``CALQUE_FAULT=commit.before:kill`` kills the process (SIGKILL) when it reaches the step;
``:error`` raises, ``:pause`` stops the whole process, all its threads (``:pause=3.5`` for that many
seconds, else ``CALQUE_FAULT_PAUSE``, else 5). ``step@2`` acts at the second visit only. Several are
separated by commas. Without the variable a fault point is one comparison.
"""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import dataclass, field
from typing import Literal, get_args

from calque.errors import ConfigInvalid, Unexpected

Action = Literal["kill", "error", "pause"]


class InjectedFault(Unexpected):
    """Raised by a fault point that was told to; never seen unless asked for."""


@dataclass(slots=True)
class Fault:
    """What is to happen at a step, and at which visit to it (0: at every one)."""

    step: str
    action: Action
    seconds: float = 5.0
    visit: int = 0
    visits: int = field(default=0, compare=False)

    def act(self) -> None:
        self.visits += 1
        if self.visit and self.visits != self.visit:
            return
        if self.action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.action == "pause":
            _freeze(self.seconds)
            return
        raise InjectedFault(f"fault point {self.step!r} was told to fail")


def parse(text: str, pause: float = 5.0) -> dict[str, Fault]:
    """``step[@visit]:action[=seconds]``, separated by commas, as faults by step."""
    faults = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        step, colon, action = part.rpartition(":")
        action, _, seconds = action.partition("=")
        step, _, visit = step.partition("@")
        if not colon or not step or action not in get_args(Action):
            raise ConfigInvalid(
                f"CALQUE_FAULT cannot be read: {part!r}", hint="Spell it step:kill|pause|error"
            )
        faults[step] = Fault(
            step,
            action,  # type: ignore[arg-type]
            float(seconds or pause),
            int(visit or 0),
        )
    return faults


def _from_environment() -> dict[str, Fault]:
    text = os.environ.get("CALQUE_FAULT", "")
    return parse(text, float(os.environ.get("CALQUE_FAULT_PAUSE", "5"))) if text else {}


_faults = _from_environment()


def arm(text: str) -> None:
    """Set the faults of this process, as the variable would have done."""
    _faults.clear()
    _faults.update(parse(text))


def _freeze(seconds: float) -> None:
    """Stop this process by signal, as a suspended machine would; a child wakes it up again."""
    pid = os.getpid()
    subprocess.Popen(
        ["/bin/sh", "-c", f"sleep {seconds}; kill -CONT {pid}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,  # whoever reads ours must not wait for the child's end
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.kill(pid, signal.SIGSTOP)


def point(step: str) -> None:
    """A step at which the process may be told to stop; nothing at all unless it was."""
    if _faults and step in _faults:
        _faults[step].act()
