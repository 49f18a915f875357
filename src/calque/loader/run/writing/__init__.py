"""Rows become Parquet files under the table's root.

:mod:`sink` (a file that is pushed into an Operator) → :mod:`encoding` (how columns are stored) →
:mod:`output` (one data file) → :mod:`partition` (which file a row belongs to) → :mod:`writer` (what
a task writes, staged file by staged file) and :mod:`adopt` (a Parquet file that fits is copied).

Invariant: the rows of a staged file are in the data files of a task wholly or not at all.
"""

from calque.loader.run.writing.task_writer import TaskWriter

__all__ = ["TaskWriter"]
