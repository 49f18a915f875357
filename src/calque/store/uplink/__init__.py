"""The client of the store: encryption, segments, pieces and the object verbs.

What holds:

1. The satellite sees no plain key, name or byte. What leaves this package towards it was
   encrypted here (``encrypted_…`` in every message), bucket names, sizes and times excepted.
2. A segment has a random key of its own, so the nonces of its blocks start at zero. The key is
   wrapped for the object's name and the segment's position, under a fresh nonce each time.
3. An object is read, copied and moved with the cipher it was written with.
4. A copy and a move touch wrapped keys only.
5. Nothing is visible before a commit; what failed is given up, what was killed is swept.

``encryption``: keys, ciphers, encrypted names, and how a copy's keys are wrapped anew.
``segments``: plain bytes into segments and back, several on their way at once.
``verbs``, one a file, over a ``session``. Beside them what they share: grants, listings by level,
parts of an upload, objects as users see them.
"""
