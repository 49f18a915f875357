"""Exactly once: the protocol of a load, its recovery, and the tables whose log decides."""
