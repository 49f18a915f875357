"""Amazon S3 and what speaks like it.

Large copies fill a multipart upload by range copies; nothing is visible before its commit. An
upload bears our mark (a part of its own, or the odd size of its parts), so that a sweep knows it
from any other's. An object's ETag, and its version where the bucket keeps them, pins it.

botocore decides who we are and where to go; the requests themselves do not pass through it, because
its request path costs more CPU than everything else in a small copy together.

The files are those of every service (see ``calque.operator.services``), and these of its own:

::

    address         keys, copy sources and queries as S3 wants them encoded
    signing         Signature Version 4, lean
    replies         what replies say: headers and XML read into values
    object_headers  headers that carry metadata, tags and class over
    uploads         multipart uploads: begun, filled, listed, committed, aborted
    buckets         the buckets of an account
    versions        every version of the objects under a prefix
    options_for_others  endpoint and keys for other S3 clients here (Delta, Iceberg, Spark)
    probe           what a server that speaks like S3 does, found out by trying
    probe_requests  the requests of that, on keys of their own
"""
