"""GCS, over the strict fake: a versioned bucket, pages as the service cuts them."""

from collections.abc import Iterator
from contextlib import contextmanager

from calque.operator import Operator
from calque.values import MIB
from tests.operator.behaviour.case import Case
from tests.servers.gcs_fake import GcsFake


@contextmanager
def open_case() -> Iterator[Case]:
    """One fake for the session; rewrites inside one bucket take a single call."""
    with GcsFake() as fake:
        fake.make_bucket("behaviour", versioning=True)

        def open_root(root: str) -> Operator:
            return Operator.from_uri(
                f"gs://behaviour/{root}?versions=true", endpoint=fake.endpoint, anonymous=True
            )

        yield Case("gcs", open_root, None, MIB)
