"""Azure Blob Storage over its REST API: block blobs of one container.

Large copies stage blocks from the source's URL and commit their list; the target is invisible until
then. Block ids carry our mark, the copy's id and the block's number, so the service itself can say
what is staged (resume) and what was left (sweep). A blob's etag pins it.

Map: ``builder``, ``config`` (options), ``credentials`` (key, SAS, azure-identity), ``client`` (one
request), ``resource`` (headers and XML to metadata and back), ``requests``, ``service`` (the
verbs), ``upload`` (writes), ``blocks`` (ids), ``copy`` (one request, or blocks), ``errors`` (the
one table).
"""
