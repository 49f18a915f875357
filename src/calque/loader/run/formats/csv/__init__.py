"""Delimited text: a quick parser, and an exact one for the blocks it cannot be trusted with."""
