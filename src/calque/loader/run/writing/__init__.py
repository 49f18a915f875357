"""Rows become Parquet files under the table's root (:mod:`table_root`).

:mod:`task_writer` (what a task writes, staged file by staged file) → :mod:`partition` (which file a
row belongs to) → :mod:`data_file_writer` (one data file) → :mod:`encoding` (how columns are stored)
→ :mod:`sink` (a file that is pushed into an Operator); :mod:`footer` reads the statistics back.
:mod:`copy_parquet`: a Parquet file that fits the table is copied, and no row is decoded.

Invariant: the rows of a staged file are in the data files of a task wholly or not at all.
"""
