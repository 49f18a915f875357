"""NDJSON and JSON: a quick parser, and an exact one for the lines it would refuse."""
