"""Processes that work for this one, so that what brings them down does not bring us down.

``process`` starts one and talks to it, ``main`` is what it runs, ``malloc`` tunes its memory. The
work is the caller's: a function and its arguments, pickled.
"""
