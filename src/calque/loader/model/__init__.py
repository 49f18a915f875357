"""The values that travel between the steps of a load; nothing here imports another step.

``staged_file`` and ``file_formats`` say what is read, ``plan`` what is to be written and how,
``outcome`` and ``data_file`` what came of it; ``error_policy``, ``content_hash`` and ``field_path``
are parts of these. All are frozen and pickle, since tasks run in other processes.
"""
