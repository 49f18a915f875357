"""Azure Blob Storage over its REST API: block blobs of one container.

Large copies stage blocks from the source's URL and commit their list; the target is invisible until
then. Block ids carry our mark, the copy's id and the block's number, so the service itself can say
what is staged (resume) and what was left (sweep). A blob's etag pins it.

The files are those of every service (see ``calque.operator.services``), and four of its own:
``blocks`` (ids and lists of blocks), ``staging`` (the blocks of one write: found, committed,
discarded), ``resource`` (headers and XML to metadata and back), ``buckets`` (the containers of an
account).
"""
