"""NDJSON and JSON: a quick parser, and an exact one for the lines it would refuse.

``reader`` gives each block to ``quick`` (pyarrow). Where a line of it would fail, ``mixed`` sets
such lines apart: they are read by ``exact``, the others still quickly. ``array`` reads files that
are one array of objects. ``infer`` tells columns and types by a sample.
"""
