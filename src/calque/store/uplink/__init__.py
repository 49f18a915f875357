"""The client of the store: encryption, segments, pieces and the object verbs.

What holds:

1. The satellite sees no plain key, name or byte. What leaves this package towards it was
   encrypted here (``encrypted_…`` in every message), bucket names, sizes and times excepted.
2. A segment has a random key of its own, so the nonces of its blocks start at zero. The key is
   wrapped for the object's name and the segment's position, under a fresh nonce each time.
3. An object is read, copied and moved with the cipher it was written with.
4. A copy and a move touch wrapped keys only.
5. Nothing is visible before a commit; what failed is given up, what was killed is swept.

Keys and names: ``keys`` → ``cipher`` → ``paths`` → ``access`` → ``grant``; ``utf8``.
Bytes: ``blocks``, ``segment_keys``, ``metadata``, ``part_etag``; ``write_segments`` with
``segments_in_flight``, ``put_inline``, ``read_segment``.
Verbs, one a file, over a ``session``: ``upload``, ``multipart`` (``parts``, ``copy_part``),
``download``, ``stat_object``, ``list_objects`` (``levels``), ``copy_object`` and ``move_object``
(both by ``rewrap``), ``move_prefix``, ``delete_object``, ``delete_objects``, ``buckets``.
"""
