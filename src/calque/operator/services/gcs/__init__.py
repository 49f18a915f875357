"""Google Cloud Storage over its JSON API.

An object's identity is its **generation**, a number that every new set of bytes gets: it is the
``etag`` and the ``version`` of :class:`~calque.values.Metadata` here, because the etag the service
sends also changes when only metadata is touched. ``if_match`` takes a generation; the service's own
etag is taken too and looked up first, the change itself still being conditional on the generation.

The files are those of every service (see ``calque.operator.services``), and two of its own:
``resource`` (the JSON of an object to metadata and back), ``buckets`` (those of a project).
"""
