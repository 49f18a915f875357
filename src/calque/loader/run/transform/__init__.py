"""``COPY INTO … FROM (SELECT …)``: Spark SQL between our reader and our writer.

``run_transformation`` prepares the job and runs it through ``data_source``, whose two halves are
``row_reader`` (staged files in, rows out) and ``row_writer`` (transformed rows in, data files out).
``field_paths`` finds what ``$1:a.b`` stands for; ``locate_error`` finds the row that made an
expression fail.
"""
