"""S3 on SeaweedFS, in a bucket that keeps versions."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.operator.behaviour.case import Case
from tests.operator.behaviour.cases.s3_seaweedfs import PART, THRESHOLD, opener
from tests.operator.services.s3.server import make_bucket
from tests.servers.shared import shared_seaweedfs


@contextmanager
def open_case() -> Iterator[Case]:
    """The shared server, with a bucket of its own."""
    server = shared_seaweedfs()
    make_bucket(server, "behaviour-versions", versions=True)
    open_root = opener(server, "behaviour-versions", versions=True)
    yield Case("s3-versions", open_root, THRESHOLD, PART)
