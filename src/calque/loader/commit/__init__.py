"""Exactly once: the protocol of a load, its recovery, and the tables whose log decides.

``protocol`` is the life of a load and the place to begin; ``settle`` commits or aborts it by a
marker, ``recovery`` ends the loads of the dead. ``target`` brings a table and its ledger into line,
by ``our_commits`` (what other ledgers did) and ``rebuild`` (everything, from the ``sidecars``).
``replace`` and ``remove_rows`` take earlier rows of a file out, ``orphans`` removes data files
nobody committed, ``truncate`` empties a table. ``tables/`` speaks to Delta and Iceberg.
"""
