"""The metabase: what a satellite knows about objects, in SQLite or PostgreSQL.

**Data model.** A *project* has *buckets*, a bucket has *objects* by encrypted key and
version. An object's contents are a *stream*: segments by position (part, index), each with
its own wrapped key and either inline data or *pieces* on nodes. A copy is another stream
whose remote segments hold no pieces; one row of ``segment_copies`` names the stream that
does, its *ancestor*.

**Invariants** (``fsck`` checks them all):

- at most one committed object a key; pending uploads beside it are invisible;
- an ancestor is an original, never a copy: references do not chain;
- a stream has at most one reference, and has one exactly when it borrows pieces;
- pieces of a physical segment are held by exactly one row, of ``segments`` or, once the last
  stream using them is removed, of ``freed_segments``: that transaction hands them back for
  removal, exactly once, and the row stays until the nodes have removed them;
- a project's usage is the sum of its committed objects, charged as they are committed;
- a copy expires with its ancestor.

**Map.** One operation a file, each with a frozen request that checks itself:

==========================================  ==================================================
``database`` ``transaction``                transactions and retries; executing
``engines`` ``connections``                 opening connections, and lending them
``callers``                                 whether whoever asked is still there
``statement`` ``procedure`` ``trip``        compiled SQL, several statements or one in a trip
``faults``                                  what a database's errors mean
``shared_commits``                          writers of SQLite that commit together
``schema`` ``migrate`` ``migrations/``      tables and the steps that lead to them
``object_keys``                             keys of any length in the indexes of both databases
``locks``                                   the one order of locks
``values`` ``verify`` ``conditions``        records, checks of requests, conditions
``pieces`` ``nodes`` ``segment_keys``       packed pieces, node aliases, packed wrapped keys
``projects`` ``quota`` ``api_keys``         projects, their limits, the secrets of their keys
``create_bucket`` ``get_bucket``            buckets
``begin_object`` ``commit_segment``         uploads
``commit_object`` ``delete_object``
``get_object`` ``list_objects``             reading
``list_segments`` ``update_metadata``
``begin_copy`` ``finish_copy``              copies: what to re-wrap, the commit, its rows,
``scene`` ``store_copy`` ``operations``     both ends in one look, long copies in parts,
``copy_at_once``                            the usual copy in one trip
``finish_move``                             moves
``ancestors``                               where a copy's pieces are: the only resolver
``promotion``                               taking a stream away: every delete and overwrite
``delete_batch``                            buckets, expired objects, abandoned uploads
``freed_segments``                          pieces on nodes that wait to be deleted
``fsck``                                    is everything whole?
==========================================  ==================================================
"""
