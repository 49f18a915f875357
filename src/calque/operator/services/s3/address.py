"""Keys, copy sources and queries as S3 wants them encoded: once, and exactly."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote

from calque.errors import InvalidInput
from calque.values.identity import normalise_endpoint

_LONGEST_KEY = 1024


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the requests for one bucket go, and what they are signed for."""

    scheme: str
    host: str
    """With the port, where it is not the scheme's own."""
    prefix: str
    """What stands before a key's path: ``/bucket`` in path style, nothing in virtual-host style."""
    region: str
    service: str = "s3"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.host}"

    @property
    def partition(self) -> str | None:
        """The part of Amazon whose buckets share one space of names; None: another server."""
        return _partition(self.host, self.region)

    def server(self, bucket: str) -> str:
        """What all buckets there share, however it is spelled: one server can copy between them."""
        return _server(self, bucket)

    def path(self, key: str | None) -> str:
        """The encoded path of a key; None means the bucket itself."""
        if key is None:
            return self.prefix or "/"
        return f"{self.prefix}/{encode_key(key)}"


# Both are asked for with every copy of a tree, and say the same each time.
@lru_cache(maxsize=64)
def _partition(host: str, region: str) -> str | None:
    name = host.rpartition("@")[2].partition(":")[0].lower()
    for domain in ("amazonaws.com.cn", "amazonaws.com"):
        if name.endswith(f".{domain}"):
            return f"{domain}/us-gov" if region.startswith("us-gov-") else domain
    return None


@lru_cache(maxsize=64)
def _server(endpoint: Endpoint, bucket: str) -> str:
    if endpoint.partition is not None:
        return endpoint.partition
    user, at, host = endpoint.host.rpartition("@")
    # Virtual-host style: the bucket is the first label of the host.
    host = host if endpoint.prefix else host.removeprefix(f"{bucket}.")
    path = endpoint.prefix.removesuffix(f"/{bucket}")
    return normalise_endpoint(f"{endpoint.scheme}://{user}{at}{host}{path}")


def encode_key(key: str) -> str:
    """A key in a URL's path. Slashes stay, everything else but letters and ``-_.~`` is encoded."""
    return quote(key, safe="/~")


def copy_source(bucket: str, key: str, version: str | None) -> str:
    """The value of ``x-amz-copy-source``: encoded once, the version outside of the encoding."""
    source = f"{quote(bucket, safe='/~:')}/{encode_key(key)}"
    return f"{source}?versionId={quote(version, safe='-_.~')}" if version else source


def encode_query(query: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Names and values of a query, percent-encoded (a space is %20, never +)."""
    return [(quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in query]


def valid_key(key: str, unfit: str) -> str:
    """The key; InvalidInput where S3, or this server, could not hold it as it is."""
    for character in unfit:
        if character in key:
            raise InvalidInput(f"this server does not keep {character!r} in a key: {key!r}")
    size = len(key.encode())
    if size > _LONGEST_KEY:
        raise InvalidInput(f"a key of {size} bytes is too long: S3 takes {_LONGEST_KEY} at most")
    return key
