"""Trees: copied, synchronised, compared, between any two services.

The way is the one of every feature, *request → plan → run → report*:

``request``
    What is asked, as frozen values (:class:`~calque.transfer.request.tree_request.TreeRequest`):
    pairs of roots, filters, how to compare, what to delete. Trees that lie in one another, or would
    write the same path, are refused here.
``plan``
    Without a write: both sides are listed in one order, joined by path, and each pair
    (:class:`~calque.transfer.model.Pair`) gets a decision
    (:class:`~calque.transfer.model.Decision`) together with the rule that spoke.
``run``
    The only place with side effects: copies by ranges of keys, deletes last. Each object ends as
    exactly one :class:`~calque.transfer.model.Row`, made after the act.
``jobs``
    Every run is a job; its journal holds what is left, so that another process can go on.
``report``
    Rows and totals. The command line and Python show it each in its own way.

Invariants:

1. Paths are relative to the root of a tree on both sides, in the byte order of their UTF-8
   (``sort_key``). A side that cannot list so is sorted on disk first; an order that breaks midway
   is an error, and nothing is deleted after an error.
2. A range of keys, ``(after, up_to]``, is the unit of work: what is in it is listed, joined and
   copied by one worker.
3. Nothing is deleted before all copies of the run have ended well and both listings were complete.
4. No object is looked at one by one where the listings tell enough.
"""
