"""The work itself: a plan goes in, data files and the outcome of each staged file come out.

A plan is cut into tasks (:mod:`cut`). An engine runs them, in processes or on Spark
(:mod:`engines`); a task reads pieces of staged files (:mod:`formats`), adds what the file itself
tells (:mod:`metadata_columns`) and writes Parquet (:mod:`writing`). Pieces of one file are joined
again by :mod:`piece_joiner`. A SELECT goes between reading and writing (:mod:`transform`).

====================  ============================================================================
``cut``               which bytes of which files make one task
``crash_probe``       whether a library survives a file
``infer``             the schema of files that no table has met yet
``engines``           where tasks run, and how often they are tried
``task``              one task from its first byte to its data files
``task_output``       what a task tells the driver
``operators``         the services that its files come from
``piece_joiner``      the pieces of a cut file as one outcome
``metadata_columns``  columns filled from the staged file and not from its contents
``formats``           readers, compression, strict casts
``transform``         ``COPY INTO … FROM (SELECT …)`` on Spark
``workers``           processes that may go down without us
``writing``           rows as Parquet files under the table's root
====================  ============================================================================

Invariants: nothing here writes to the ledger or to the table's log. Only what a task returned
counts: data files of an attempt that was not collected are orphans. A staged file is loaded wholly,
less the rows that the error policy lets go, or not at all.
"""
