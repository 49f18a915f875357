"""A strict fake of the Google Cloud Storage JSON API, on loopback, for tests.

It keeps what the public emulators let pass: generations and metagenerations, every precondition,
rewrites in several calls with tokens that age, compose limits, resumable uploads with exact
offsets, checksums. Nothing is kept on disk.

Map: ``server`` (HTTP), ``routes`` (which verb a request means), ``model`` (buckets, objects),
``conditions`` (preconditions), ``objects`` (get, list, patch, delete, compose), ``rewrite``,
``uploads`` (media, multipart, resumable), ``signed`` (objects by signed URLs), ``replies``
(answers and errors as the service words them).
"""

from tests.servers.gcs_fake.model import Journal, World
from tests.servers.gcs_fake.server import GcsFake

__all__ = ["GcsFake", "Journal", "World"]
