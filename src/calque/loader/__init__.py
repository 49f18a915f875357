"""Files into tables, each exactly once.

A request goes one way: **list → compare with the ledger → plan → run → commit → record → report**.
Each step is a folder, and imports go down this list only (import-linter keeps it so):

=================  ================================================================================
``api``            ``calque.load``, ``calque.sql``, and ``Loader``, which runs many requests
``spark_source``   a stage as a data source of Spark: reads, loads nothing
``progress_bar``   a load as it goes on, on a terminal and in a notebook
``run_request``    one run of a request: the flow itself
``load_batches``   batch after batch of it; makes the table, and decides again where others came
``fill_report``    the one place that fills the report
``batch``          one load: claim, write, prepare, commit
``look/``          a stage, a table, the tables there are: for one who only looks
``after/``         purge, archive, upkeep and expiry of records
``plan/``          stage, comparison, format and dialect, schema, the plan, previews
``commit/``        the protocol of a load, settling and recovery, sidecars, the tables
``run/``           engines, tasks, formats, writing: what happens inside a plan
``report``         the report as data
``request/``       what is asked for: COPY INTO or keywords
``model/``         the values between the steps; imports nothing of the loader
``required_packages``  the extra that loads need, asked for before anything is imported
=================  ================================================================================

Invariants:

1. Comparing and planning write nothing. Only a claim opens a load, and its plan is made before it.
2. The table's own log is the arbiter of a load; ledgers are caches of it and can be rebuilt.
3. A load is in the table whole or not at all, and a load that was killed is finished or undone by
   whoever comes next. Safety never depends on a clock.
"""

from calque.loader.required_packages import TASKS, require_load_extra

# Here, because whatever of the loader is imported first passes through here.
require_load_extra(TASKS)
