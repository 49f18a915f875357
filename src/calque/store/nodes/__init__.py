"""Storage nodes: an id, a placement and an Operator root that holds pieces.

What holds:

1. A piece that a row names is on its node whole, and never changes. (A power failure may leave half
   of one that no row names yet: it is an orphan like any other.)
2. The id of a piece follows from the segment's root piece id, the node and the piece's number.
3. Every share in a piece is checked against its hash before it is used.
4. A node knows by itself when a piece expires.
5. A piece is deleted when the satellite says that its last holder is gone, and only then.
6. A root is known by a file with the node's id: without it the node has failed, and is not empty.

``pieces`` (names and places), ``erasure`` (stripes into shares and back), ``units`` (a share as it
lies in a piece), ``identity``, ``node``, ``upload``, ``download``, ``delete``, ``expire``,
``liveness`` (whether a node answers), ``streams`` and ``sweeps`` (one piece, or all, without
waiting for ever). Nodes know nothing of objects, of rows or of the satellite; clients on another
machine reach them through :mod:`calque.store.relay`.
"""
