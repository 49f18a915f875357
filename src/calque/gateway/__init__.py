"""S3 over the store: every tool that speaks S3 works on it, and copies move no byte.

request → ``signature`` (who) → ``route`` (which verb) → ``verbs`` (one file each) → the store's
``Project`` → response. ``body`` is the chain of readers that a body passes on its way in; ``xml``
writes and reads documents; ``errors`` is the one table from our errors to S3's; ``keys`` are the
access keys; ``server`` puts it all behind HTTP. Nothing is imported here: keys can be made where no
server is installed.

Invariants: nothing is committed before the last reader of a body is content. Conditions hold in
the commit. A secret, a grant or a signature is in no log, error or metric.
"""
