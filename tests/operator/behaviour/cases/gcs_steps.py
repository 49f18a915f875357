"""GCS, over the strict fake: an unversioned bucket whose rewrites take a call for each MiB."""

from collections.abc import Iterator
from contextlib import contextmanager

from calque.operator import Operator
from calque.values import MIB
from tests.operator.behaviour.case import Case
from tests.servers.gcs_fake import GcsFake


@contextmanager
def open_case() -> Iterator[Case]:
    """One fake for the session."""
    with GcsFake() as fake:
        fake.make_bucket("behaviour")
        fake.world.near_in_one_call = False
        fake.world.rewrite_bytes = MIB

        def open_root(root: str) -> Operator:
            return Operator.from_uri(
                f"gs://behaviour/{root}", endpoint=fake.endpoint, anonymous=True
            )

        yield Case("gcs_steps", open_root, MIB, MIB)
