"""The metabase: what a satellite knows about objects, in SQLite or PostgreSQL.

**Data model.** A *project* has *buckets*, a bucket has *objects* by encrypted key and
version. An object's contents are a *stream*: segments by position (part, index), each with
its own wrapped key and either inline data or *pieces* on nodes. A copy is another stream
whose remote segments hold no pieces; one row of ``segment_copies`` names the stream that
does, its *ancestor*. A *slice* is a segment that is a range of another one, whose pieces it
borrows; its row of ``segment_slices`` names that one.

**Invariants** (``fsck`` checks them all):

- at most one committed object a key; pending uploads beside it are invisible;
- an ancestor is an original, never a copy: references do not chain;
- a stream has at most one reference, and has one exactly when it borrows whole segments;
- a slice is cut from a row that holds pieces, which stays while it has slices, with or without
  an object;
- pieces of a physical segment are held by exactly one row, of ``segments`` or, once the last
  stream using them is removed, of ``freed_segments``: that transaction hands them back for
  removal, exactly once, and the row stays until the nodes have removed them;
- a project's usage is the sum of its committed objects, charged as they are committed;
- a copy expires with its ancestor.

**Map.** One operation a file, each with a frozen request that checks itself. From the top down;
nothing imports what stands above it (``pyproject.toml`` says so to import-linter):

============  ====================================================================================
``fsck``      is everything whole? (beside it ``copy_metabase``: all rows into another database)
``copies``    Begin and Finish of a copy or a move; ``rules``: what must hold for one, said once;
              ``copy_at_once``: the usual copy in one trip; ``finish_prefix``: a whole prefix
``objects``   uploads, parts that are ranges, reads, lists, deletes one by one and in batches,
              pieces to be freed
``streams``   ``lookup``: finding an object; ``ancestors``: where a copy's pieces are, the only
              resolver; ``slices``: who borrows a range, and what that keeps; ``promotion``:
              taking a stream away, behind every delete and overwrite
``accounts``  projects, their quotas, API keys, buckets, nodes
``engine``    how SQL is executed: connections and transactions, compiled statements, several of
              them in one trip, the one order of locks, commits that are shared, migrations
``model``     the tables, the records they hold, packed pieces and keys, checks, conditions
============  ====================================================================================
"""
