"""SQLite and PostgreSQL, as every part of calque that keeps something in a database uses them.

The ledger and the store's metabase have tables and rules of their own; what is true of the two
databases themselves is said once, here:

- ``sqlite``: an engine for a file: write-ahead log, how long to wait for others, how to begin;
- ``postgres``: an engine for a server: when a silent one is given up, how long locks last;
- ``errors``: which of our errors a result code or an SQLSTATE is, and which work is tried again;
- ``schema_steps``: which steps a schema went through, and the missing ones, one process at a time;
  a new database gets what they leave at once;
- ``alembic_steps``, ``migrations/env.py``: how Alembic is told to take those steps.

Invariants:

- a writing transaction says so when it begins (``WRITES``): on SQLite it holds the write lock from
  its first statement, and so never fails half-way for having begun as a reader;
- a silent server is noticed after the same time, whoever waits for it;
- all missing steps of a schema are one transaction, and only one process takes them;
- a database that was made at once is the same as one that went through the steps.
"""
