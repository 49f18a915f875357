"""The Spark session, and how work becomes tasks.

``java`` finds a JVM, ``class_cache`` makes it start quickly, ``gateway`` starts it and ``session``
makes a session of it or takes the caller's. ``strict_session`` is a copy of a session with settings
of our own. ``tasks`` runs a function over items, ``counter`` tells how far it is. ``errors`` and
``job_errors`` say in our words what Spark, Py4J or the JVM raised.

Nothing starts a JVM before there is work for it, and a session that the caller gave stays as it
was.
"""
