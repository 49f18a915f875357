"""Amazon S3 and what speaks like it.

::

    builder.py    what the registry calls
    config.py     every option
    service.py    the verbs
    copy.py       CopyObject and multipart copies, for the drivers
    errors.py     the one table of error codes
    account.py    botocore's share: credentials, endpoints, regions, certificates, proxies
    signing.py    Signature Version 4, lean
    wire.py       keep-alive connections and HTTP/1.1 over them
    client.py     one signed request through the layers, its refusals mapped
    address.py    keys, copy sources and queries as S3 wants them encoded
    replies.py    what replies say: headers and XML read into values
    carried.py    headers that carry metadata, tags and class over
    listing.py    pages of keys
    reading.py    bytes, resumed where a reply was cut
    writing.py    one PUT, or parts with bounded memory
    marker.py     how an upload of ours is known from any other

botocore decides who we are and where to go; the requests themselves do not pass through it, because
its request path costs more CPU than everything else in a small copy together.
"""
