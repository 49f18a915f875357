"""S3 on calque's own gateway: every condition is kept, keys come in the order of their bytes."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from calque.operator import Operator
from calque.values import MIB
from tests.gateway.world import REGION, gateway_world
from tests.operator.behaviour.case import Case

THRESHOLD, PART = 6 * MIB, 5 * MIB


@contextmanager
def open_case() -> Iterator[Case]:
    """One gateway for the session, a root in its bucket for each test."""
    with tempfile.TemporaryDirectory() as folder, gateway_world(Path(folder) / "data") as world:
        world.project.create_bucket("behaviour")

        def open_root(root: str) -> Operator:
            return Operator.from_uri(
                f"s3://behaviour/{root}",
                endpoint_url=world.url,
                region=REGION,
                access_key_id=world.key.access_key_id,
                secret_access_key=world.key.secret_access_key,
                threshold=THRESHOLD,
                part_size=PART,
                page_size=7,
                sweep_empty=True,
            )

        yield Case("s3-gateway", open_root, THRESHOLD, PART)
