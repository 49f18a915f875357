"""S3 on SeaweedFS: every condition is kept; keys are not listed in the order of their bytes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from calque.operator import Operator
from calque.values import MIB
from tests.operator.behaviour.case import Case
from tests.operator.services.s3.server import make_bucket
from tests.servers.seaweedfs import S3Server
from tests.servers.shared import shared_seaweedfs

THRESHOLD, PART = 6 * MIB, 5 * MIB


def opener(server: S3Server, bucket: str, **options: object) -> Callable[[str], Operator]:
    """Opens roots in a bucket, with the smallest parts that S3 takes."""

    def open_root(root: str) -> Operator:
        return Operator.from_uri(
            f"s3://{bucket}/{root}",
            endpoint_url=server.endpoint,
            region=server.region,
            access_key_id=server.access_key,
            secret_access_key=server.secret_key,
            threshold=THRESHOLD,
            part_size=PART,
            page_size=7,
            key_order=False,
            unfit_in_keys="\\",
            sweep_empty=True,
            **options,
        )

    return open_root


@contextmanager
def open_case() -> Iterator[Case]:
    """The shared server, a root in a bucket for each test."""
    server = shared_seaweedfs()
    make_bucket(server, "behaviour")
    yield Case("s3-seaweedfs", opener(server, "behaviour"), THRESHOLD, PART)
