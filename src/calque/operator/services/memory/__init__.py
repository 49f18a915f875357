"""Objects in this process's memory: strict, thread-safe, with versions and multipart copies.

The files are those of every service (see ``calque.operator.services``), and one of its own:
``store`` (the objects themselves, behind one lock). There is no ``marker``: every unfinished upload
of a store is calque's own.
"""
