"""The fake, driven by Google's own client."""

from collections.abc import Iterator

import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage

from tests.servers.gcs_fake import GcsFake


@pytest.fixture
def fake() -> Iterator[GcsFake]:
    """A fake with a bucket ``near``, one ``far`` away and one that keeps versions."""
    with GcsFake() as running:
        running.make_bucket("near")
        running.make_bucket("far", location="EU")
        running.make_bucket("kept", versioning=True)
        yield running


@pytest.fixture
def client(fake: GcsFake) -> storage.Client:
    """google-cloud-storage, pointed at the fake."""
    return storage.Client(
        project="p",
        credentials=AnonymousCredentials(),
        client_options={"api_endpoint": fake.endpoint},
    )


@pytest.fixture
def near(client: storage.Client) -> storage.Bucket:
    """The bucket most tests use."""
    return client.bucket("near")
