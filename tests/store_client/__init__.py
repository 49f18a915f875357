"""The store as a client sees it: a satellite, nodes and bytes together.

``tests/store`` asks the satellite and its metabase by messages, row by row; whatever needs a key, a
piece or a folder is tested here, against real stores that are checked for wholeness at the end.
"""
