"""HTTP as the three clouds share it; it knows none of them.

From the socket up, each file stands on those above it:

::

    patience    how long a connection waits for its peer, and who may call it off
    connection  one kept-alive connection: a request out, the head and body of its reply in
    route       the way to a host: directly or by a proxy, plain or by TLS
    pool        a bounded set of connections to one host, shared by threads, not by forks
    exchange    one request and its answer, failures as errors of ours (S3 signs its own)
    redact      the words of a refusal without the proofs of who asked
    pages       pages for people in the place of an answer
    paging      listings that come in pages, and servers that never turn them
    counts      sizes as servers tell them
    digest      checksums of bytes as they arrive
    body        the bytes of an object, held against what was asked for and promised

Nothing here repeats a request, but one that does no harm twice and met a kept connection which the
server had just closed. All else is for the retry layer.
"""
