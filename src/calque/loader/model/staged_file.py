"""A file of the stage, and which version of it is meant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calque.values import SourceIdentity
from calque.values.row_errors import RowError as RowError


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A file of a stage: its full location, its name after the stage's path, its identity."""

    location: str
    name: str
    identity: SourceIdentity
    about: Mapping[str, Any] | None = None
    """What else the listing or a look told of it."""
