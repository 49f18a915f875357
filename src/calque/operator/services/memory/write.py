"""An object written whole, in one request once all its bytes are there."""

from __future__ import annotations

from collections.abc import Iterable

from calque.operator.options import WriteOptions
from calque.operator.services.memory.client import Client
from calque.operator.services.memory.store import Condition
from calque.values import Metadata


def write(client: Client, path: str, chunks: Iterable[bytes], options: WriteOptions) -> Metadata:
    """Write all chunks; an error out of them passes through and nothing is left."""
    key, data = client.key(path), b"".join(chunks)
    template = Metadata(
        path=key,
        content_type=options.content_type,
        content_encoding=options.content_encoding,
        content_language=options.content_language,
        content_disposition=options.content_disposition,
        cache_control=options.cache_control,
        expires=options.expires,
        user=dict(options.user),
        tags=None if options.tags is None else dict(options.tags),
        storage_class=options.storage_class,
    )
    # Chunks were read before this: they may come out of requests to the same store.
    condition = Condition(options.if_not_exists, options.if_match)
    made = client.send("write", path, lambda: client.store.put(key, template, data, condition))
    return client.localize(made)
