"""What killed copies leave in GCS: nothing.

A rewrite that is given up ends with its token, and an upload session shows in no listing and costs
nothing; both are forgotten by the service within a week.
"""

from __future__ import annotations

from collections.abc import Iterator

from calque.errors import Unsupported
from calque.operator.service import Leftover
from calque.operator.services.gcs.client import Client


def list_leftovers(client: Client, prefix: str) -> Iterator[Leftover]:
    """None, under whatever prefix."""
    return iter(())


def remove_leftover(client: Client, leftover: Leftover) -> None:
    """Refused: what is named here cannot have come from :func:`list_leftovers`."""
    raise Unsupported(f"copies within GCS leave nothing to remove at {leftover.location}")
