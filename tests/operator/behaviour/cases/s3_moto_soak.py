"""S3 on moto: keys in byte order, but it ignores pins of the source and conditions on CopyObject,
so that the service must compare, and keep if_not_exists by the commit of an upload."""

from collections.abc import Iterator
from contextlib import contextmanager

from calque.operator import Operator
from calque.values import MIB
from tests.operator.behaviour.case import Case
from tests.operator.services.s3.server import make_bucket
from tests.servers.moto import moto

THRESHOLD, PART = 6 * MIB, 5 * MIB


@contextmanager
def open_case() -> Iterator[Case]:
    """One server for the session, a root in its bucket for each test."""
    with moto() as server:
        make_bucket(server, "behaviour")

        def open_root(root: str) -> Operator:
            return Operator.from_uri(
                f"s3://behaviour/{root}",
                endpoint_url=server.endpoint,
                region=server.region,
                access_key_id=server.access_key,
                secret_access_key=server.secret_key,
                threshold=THRESHOLD,
                part_size=PART,
                page_size=7,
                copy_if_not_exists="multipart",
                source_pins=False,
                sweep_empty=True,
            )

        yield Case("s3-moto", open_root, THRESHOLD, PART)
