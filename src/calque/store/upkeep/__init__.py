"""The store looks after itself.

``scan`` shows one snapshot of the segments to any number of observers, in this process or as Spark
tasks (``spark_runner``). What stands on it: ``gc`` (pieces that no segment names), ``tally``,
``fsck``, ``repair``, ``audit``, ``exit``. By index, without a scan: ``expire``. ``backup`` copies a
store. ``timers`` runs all of it inside a server; ``lease`` lets one process at a time do so.
"""
