"""Delimited text: a quick parser, and an exact one for the blocks it cannot be trusted with.

``reader`` passes header and skipped lines and gives each block to ``quick`` (pyarrow) and, where
that would read it otherwise than we do, to ``exact``. ``locator`` finds the line and the character
of what was refused. ``sniffer`` tells the dialect of files that nobody described, ``infer`` their
columns. The options are those of ``loader/model/file_formats.py``.
"""
